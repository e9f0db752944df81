import { ChevronRight } from "lucide-react";
import type { ReactNode } from "react";

import type { DeadLetterGroup } from "@/api/dead-letters";
import { Badge } from "@/components/badges";
import { Button } from "@/components/buttons";
import { FailureHistogram } from "@/components/dead-letters/failure-histogram";
import { RelativeTime } from "@/components/relative-time-and-duration";
import { classNames } from "@/lib/class-names";
import { formatCount, formatPlural } from "@/lib/format-number";

interface DeadLetterGroupListProps {
  groups: readonly DeadLetterGroup[];
  /** The ID of the expanded group. */
  open: string | undefined;
  onOpen: (id: string | undefined) => void;
  /** Undefined if the user's role does not allow it. */
  onRedrive?: (group: DeadLetterGroup) => void;
  onDelete?: (group: DeadLetterGroup) => void;
  /** The jobs of the expanded group. */
  children: (group: DeadLetterGroup) => ReactNode;
}

/** Dead letters grouped by error, largest group first. */
export function DeadLetterGroupList(props: DeadLetterGroupListProps) {
  const { groups, open, onOpen, onRedrive, onDelete, children } = props;
  return (
    <ul aria-label="Errors" className="flex flex-col gap-3">
      {groups.map((group) => {
        const isOpen = group.id === open;
        return (
          <li key={groupKey(group)} className="rounded-lg border bg-surface">
            <div className="flex flex-wrap items-start gap-x-4 gap-y-2 px-4 py-3">
              <button
                type="button"
                aria-expanded={isOpen}
                onClick={() => onOpen(isOpen ? undefined : group.id)}
                className="flex min-w-0 flex-1 basis-72 items-start gap-2 rounded-sm text-left"
              >
                <ChevronRight
                  aria-hidden
                  className={classNames(
                    "mt-0.5 size-4 shrink-0 text-muted transition-transform",
                    isOpen && "rotate-90",
                  )}
                />
                <span className="min-w-0">
                  <span className="font-semibold break-all text-failed">{group.error || "Error"}</span>
                  <span className="line-clamp-2 text-[13px] break-words">{group.example ?? group.message}</span>
                  <span className="mt-1.5 flex flex-wrap items-center gap-x-2 gap-y-1 text-xs text-muted">
                    <Badge>{group.queue}</Badge>
                    <span>{taskNames(group).join(", ")}</span>
                    <span>
                      first <RelativeTime at={group.first_seen} />, last <RelativeTime at={group.last_seen} />
                    </span>
                  </span>
                </span>
              </button>
              <FailureHistogram buckets={group.histogram} until={group.last_seen ?? group.since} />
              <span className="tabular-nums text-base font-semibold" title={formatPlural(group.count, "dead letter")}>
                {formatCount(group.count)}
              </span>
              <span className="flex gap-1">
                {onRedrive && (
                  <Button onClick={() => onRedrive(group)} aria-label={`Redrive ${group.error}`}>
                    Redrive
                  </Button>
                )}
                {onDelete && (
                  <Button variant="quiet" onClick={() => onDelete(group)} aria-label={`Delete ${group.error}`}>
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

/** Groups of different queues may have the same ID. */
function groupKey({ queue, id }: Pick<DeadLetterGroup, "queue" | "id">): string {
  return `${queue} ${id}`;
}

/** The tasks of the group's samples. */
export function taskNames(group: DeadLetterGroup): string[] {
  return [...new Set(group.samples.map((job) => job.type))].sort();
}
