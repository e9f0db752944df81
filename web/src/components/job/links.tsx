import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

import { classes } from "@/lib/classes";

/** A job, by its id. */
export function JobLink({ id, children, className }: { id: string; children?: ReactNode; className?: string }) {
  return (
    <Link
      to="/jobs/$id"
      params={{ id }}
      search={{}}
      className={classes(
        "rounded-sm break-all underline-offset-2 hover:underline",
        className ?? "font-mono text-[13px]",
      )}
    >
      {children ?? id}
    </Link>
  );
}
