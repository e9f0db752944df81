import type { ReactNode } from "react";

import { classNames } from "@/lib/class-names";

interface MetricTileProps {
  label: string;
  /** The number. */
  children: ReactNode;
  /** A line below the number. Its height is reserved when it is empty, so that nothing jumps. */
  note?: ReactNode;
  isAlarming?: boolean;
}

/** A labelled number. */
export function MetricTile({ label, children, note, isAlarming = false }: MetricTileProps) {
  return (
    <div className="min-w-0 rounded-lg border bg-surface px-4 py-3">
      <dt className="truncate text-xs text-muted">{label}</dt>
      <dd>
        <span
          className={classNames(
            "tabular-nums mt-0.5 block truncate text-2xl leading-8 font-semibold tracking-tight",
            isAlarming && "text-failed",
          )}
        >
          {children}
        </span>
        <span className="tabular-nums block min-h-4.5 truncate max-sm:whitespace-normal text-xs text-muted">
          {note}
        </span>
      </dd>
    </div>
  );
}

/** A grid of tiles; two columns on a phone. */
export function MetricTiles({ children }: { children: ReactNode }) {
  return <dl className="grid grid-cols-2 gap-3 sm:grid-cols-3 xl:grid-cols-6">{children}</dl>;
}
