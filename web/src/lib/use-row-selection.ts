/** The selection of rows, changed by clicks and keys. */

import { useCallback, useRef, useState } from "react";

import type { Job } from "@/api/job-list";
import { runKey } from "@/lib/run-key";

export interface Selection {
  readonly keys: ReadonlySet<string>;
  /** All matching jobs, also those that are not loaded. */
  readonly isAll: boolean;
}

const NONE: Selection = { keys: new Set(), isAll: false };

export function useRowSelection(rows: readonly Job[]) {
  const [selection, setSelection] = useState<Selection>(NONE);
  const anchor = useRef<string | null>(null);

  const change = useCallback((by: (keys: Set<string>) => void) => {
    setSelection((old) => {
      const keys = new Set(old.keys);
      by(keys);
      return { keys, isAll: false };
    });
  }, []);
  const rangeTo = useCallback(
    (row: number) => {
      const from = rows.findIndex((job) => runKey(job) === anchor.current);
      change((keys) => keysBetween(rows, from < 0 ? row : from, row).forEach((key) => keys.add(key)));
    },
    [rows, change],
  );
  return {
    selection,
    clear: useCallback(() => setSelection(NONE), []),
    all: useCallback(() => setSelection({ keys: new Set(), isAll: true }), []),
    toggleLoaded: useCallback(
      () =>
        setSelection(({ keys, isAll }) =>
          isAll || rows.every((job) => keys.has(runKey(job)))
            ? NONE
            : { keys: new Set(rows.map(runKey)), isAll: false },
        ),
      [rows],
    ),
    toggle: useCallback(
      (row: number, isRange: boolean) => {
        const job = rows[row];
        if (job === undefined) return;
        const key = runKey(job);
        if (isRange && anchor.current !== null) {
          rangeTo(row);
          return;
        }
        anchor.current = key;
        change((keys) => {
          if (!keys.delete(key)) keys.add(key);
        });
      },
      [rows, change, rangeTo],
    ),
    /** Extends the selection from its anchor to this row. */
    extend: useCallback(
      (row: number) => {
        const before = rows[Math.max(0, row - 1)];
        if (anchor.current === null && before !== undefined) anchor.current = runKey(before);
        rangeTo(row);
      },
      [rows, rangeTo],
    ),
  };
}

/** The keys from one row to another, in either direction. */
export function keysBetween(rows: readonly Job[], from: number, to: number): string[] {
  return rows.slice(Math.min(from, to), Math.max(from, to) + 1).map(runKey);
}
