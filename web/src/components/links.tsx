/** Ways from a number or a name to what it counts or names. */

import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

import type { JobsSearch } from "@/routes/jobs.search";
import { classes } from "@/lib/classes";

/** Large enough for a finger. */
const LOOK = "inline-block min-h-[24px] min-w-[24px] rounded-sm leading-6 underline-offset-2 hover:underline";
const NAME = "link font-mono text-[13px] break-all";

/** Which run of a job is meant matters to the server, and seldom to the reader. */
const RUN = /@[0-9a-z]{9}$/;

/** A job, by its id. */
export function JobLink({ id, children, className }: { id: string; children?: ReactNode; className?: string }) {
  return (
    <Link
      to="/jobs/$id"
      params={{ id }}
      title={children === undefined ? id : undefined}
      className={classes(LOOK, className ?? NAME)}
    >
      {children ?? id.replace(RUN, "")}
    </Link>
  );
}

/** The jobs that a number counts. */
export function JobsLink({
  filter,
  label,
  children,
  className,
}: {
  filter: JobsSearch;
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
