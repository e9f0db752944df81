import type { ReactNode } from "react";

import { classes } from "@/lib/classes";

interface TileProps {
  label: string;
  /** The number. */
  children: ReactNode;
  /** A line below it. It keeps its place when there is nothing to say, so that nothing jumps. */
  note?: ReactNode;
  isAlarming?: boolean;
}

/** A number that matters, with its name above. */
export function Tile({ label, children, note, isAlarming = false }: TileProps) {
  return (
    <div className="min-w-0 rounded-lg border bg-surface px-4 py-3">
      <dt className="truncate text-xs text-muted">{label}</dt>
      <dd>
        <span
          className={classes(
            "figures mt-0.5 block truncate text-2xl leading-8 font-semibold tracking-tight",
            isAlarming && "text-failed",
          )}
        >
          {children}
        </span>
        <span className="figures block min-h-4.5 truncate text-xs text-muted">{note}</span>
      </dd>
    </div>
  );
}

/** Tiles beside each other: two on a phone. */
export function Tiles({ children }: { children: ReactNode }) {
  return <dl className="grid grid-cols-2 gap-3 sm:grid-cols-3 xl:grid-cols-6">{children}</dl>;
}
