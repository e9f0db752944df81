import { ChevronRight } from "lucide-react";
import type { ReactNode } from "react";

import type { DeadGroup } from "@/api/dead";
import { Badge } from "@/components/badge";
import { Button } from "@/components/button";
import { Moment } from "@/components/moment";
import { classes } from "@/lib/classes";
import { count, plural } from "@/lib/numbers";

interface GroupListProps {
  groups: readonly DeadGroup[];
  /** The id of the one that is open. */
  open: string | undefined;
  onOpen: (id: string | undefined) => void;
  /** Absent where the reader may not. */
  onRedrive?: (group: DeadGroup) => void;
  onDelete?: (group: DeadGroup) => void;
  /** The jobs of the open group. */
  children: (group: DeadGroup) => ReactNode;
}

/** What failed in the same way, the largest first. */
export function GroupList({ groups, open, onOpen, onRedrive, onDelete, children }: GroupListProps) {
  return (
    <ul aria-label="Errors" className="flex flex-col gap-3">
      {groups.map((group) => {
        const isOpen = group.id === open;
        return (
          <li key={`${group.queue} ${group.id}`} className="rounded-lg border bg-surface">
            <div className="flex flex-wrap items-start gap-x-4 gap-y-2 px-4 py-3">
              <button
                type="button"
                aria-expanded={isOpen}
                onClick={() => onOpen(isOpen ? undefined : group.id)}
                className="flex min-w-0 flex-1 basis-72 items-start gap-2 rounded-sm text-left"
              >
                <ChevronRight
                  aria-hidden
                  className={classes("mt-0.5 size-4 shrink-0 text-muted transition-transform", isOpen && "rotate-90")}
                />
                <span className="min-w-0">
                  <span className="font-semibold break-all text-failed">{group.error || "Error"}</span>
                  <span className="line-clamp-2 text-[13px] break-words">
                    {group.count === 1 ? (group.samples[0]?.error?.message ?? group.message) : group.message}
                  </span>
                  <span className="mt-1.5 flex flex-wrap items-center gap-x-2 gap-y-1 text-xs text-muted">
                    <Badge>{group.queue}</Badge>
                    <span>{tasksOf(group).join(", ")}</span>
                    <span>
                      since <Moment at={group.since} />
                    </span>
                  </span>
                </span>
              </button>
              <span className="figures text-base font-semibold" title={plural(group.count, "dead letter")}>
                {count(group.count)}
              </span>
              <span className="flex gap-1">
                {onRedrive && (
                  <Button onClick={() => onRedrive(group)} aria-label={`Redrive ${group.error}`}>
                    Redrive
                  </Button>
                )}
                {onDelete && (
                  <Button look="quiet" onClick={() => onDelete(group)} aria-label={`Delete ${group.error}`}>
                    Delete
                  </Button>
                )}
              </span>
            </div>
            {isOpen && <div className="border-t">{children(group)}</div>}
          </li>
        );
      })}
    </ul>
  );
}

/** Of the samples: a group that spans tasks shows most of them. */
export function tasksOf(group: DeadGroup): string[] {
  return [...new Set(group.samples.map((job) => job.type))].sort();
}
