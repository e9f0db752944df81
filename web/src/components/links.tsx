/** Ways from a number or a name to what it counts or names. */

import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

import type { JobState } from "@/lib/states";
import { classes } from "@/lib/classes";

const LOOK = "rounded-sm underline-offset-2 hover:underline";

/** A job, by its id. */
export function JobLink({ id, children, className }: { id: string; children?: ReactNode; className?: string }) {
  return (
    <Link to="/jobs/$id" params={{ id }} className={classes(LOOK, className ?? "font-mono text-[13px] break-all")}>
      {children ?? id}
    </Link>
  );
}

export interface JobsFilter {
  readonly state?: JobState;
  readonly queue?: string;
  readonly type?: string;
}

/** The jobs that a number counts. */
export function JobsLink({
  filter,
  label,
  children,
  className,
}: {
  filter: JobsFilter;
  label?: string;
  children: ReactNode;
  className?: string;
}) {
  return (
    <Link to="/jobs" search={filter} aria-label={label} className={classes(LOOK, className ?? "figures")}>
      {children}
    </Link>
  );
}
