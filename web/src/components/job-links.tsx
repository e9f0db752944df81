/** Links to one job, and to the list of jobs that a number counts. */

import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

import { classNames } from "@/lib/class-names";
import type { JobsSearch } from "@/routes/jobs.search-params";

/** Large enough for touch. */
const LINK = "inline-block min-h-[24px] min-w-[24px] rounded-sm leading-6 underline-offset-2 hover:underline";
const NAME = "link font-mono text-[13px] break-all";

/** The run is part of the link, but not of the text. */
const RUN = /@[0-9a-z]{9}$/;

/** A link to a job. */
export function JobLink({ id, children, className }: { id: string; children?: ReactNode; className?: string }) {
  return (
    <Link
      to="/jobs/$id"
      params={{ id }}
      title={children === undefined ? id : undefined}
      className={classNames(LINK, className ?? NAME)}
    >
      {children ?? id.replace(RUN, "")}
    </Link>
  );
}

/** A link from a count to the filtered job list. */
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
    <Link to="/jobs" search={filter} aria-label={label} className={classNames(LINK, className ?? "tabular-nums")}>
      {children}
    </Link>
  );
}
