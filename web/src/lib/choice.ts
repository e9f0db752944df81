/** Which rows of a list are chosen, and how that changes with clicks and keys. */

import { useCallback, useRef, useState } from "react";

import type { Job } from "@/api/jobs";
import { keyOf, range } from "@/lib/rows";

export interface Selection {
  readonly keys: ReadonlySet<string>;
  /** All that match, also those that are not loaded. */
  readonly isAll: boolean;
}

const NONE: Selection = { keys: new Set(), isAll: false };

export function useChoice(rows: readonly Job[]) {
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
      const from = rows.findIndex((job) => keyOf(job) === anchor.current);
      change((keys) => range(rows, from < 0 ? row : from, row).forEach((key) => keys.add(key)));
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
          isAll || rows.every((job) => keys.has(keyOf(job))) ? NONE : { keys: new Set(rows.map(keyOf)), isAll: false },
        ),
      [rows],
    ),
    toggle: useCallback(
      (row: number, isRange: boolean) => {
        const job = rows[row];
        if (job === undefined) return;
        const key = keyOf(job);
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
    /** From where the choice began to this row. */
    extend: useCallback(
      (row: number) => {
        const before = rows[Math.max(0, row - 1)];
        if (anchor.current === null && before !== undefined) anchor.current = keyOf(before);
        rangeTo(row);
      },
      [rows, rangeTo],
    ),
  };
}
