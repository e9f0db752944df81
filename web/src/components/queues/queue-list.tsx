import { Link } from "@tanstack/react-router";
import { MoreHorizontal, Pause, Play, Trash2 } from "lucide-react";
import type { ReactNode } from "react";

import type { OverviewQueue } from "@/api/overview";
import { Badge } from "@/components/badges";
import { Button, IconButton } from "@/components/buttons";
import { Sparkline } from "@/components/charts/sparkline";
import { DropdownMenu, MenuItem } from "@/components/dropdown-menu";
import { JobsLink } from "@/components/job-links";
import { WaitDuration } from "@/components/relative-time-and-duration";
import { classNames } from "@/lib/class-names";
import { formatPercent, formatPlural, formatRate, formatShort } from "@/lib/format-number";
import { isHighFailureRate } from "@/lib/is-high-failure-rate";
import { JOB_STATES, JOB_STATE_STYLES } from "@/lib/job-and-workflow-states";

export interface QueueActions {
  /** Undefined if the user's role does not allow it. */
  readonly onPause?: (queue: string) => void;
  readonly onResume?: (queue: string) => void;
  readonly onPurge?: (queue: string) => void;
}

interface QueueListProps extends QueueActions {
  queues: readonly OverviewQueue[];
  /** Time of the counts. */
  at: string;
}

/** One row for each queue; on a phone, a card. */
export function QueueList({ queues, at, ...actions }: QueueListProps) {
  return (
    <ul aria-label="Queues" className="flex flex-col gap-3">
      {queues.map((queue) => (
        <li key={queue.name}>
          <QueueCard queue={queue} at={at} {...actions} />
        </li>
      ))}
    </ul>
  );
}

function QueueCard({ queue, at, onPause, onResume, onPurge }: { queue: OverviewQueue; at: string } & QueueActions) {
  const waiting = queue.stats.PENDING + queue.stats.SCHEDULED + queue.stats.BLOCKED;
  return (
    <section
      aria-label={queue.name}
      className={classNames("rounded-lg border bg-surface", queue.is_paused && "border-blocked")}
    >
      <header
        className={classNames(
          "flex flex-wrap items-center gap-x-3 gap-y-1 rounded-t-lg px-4 py-2",
          queue.is_paused && "bg-blocked-soft",
        )}
      >
        <h2 className="min-w-0 font-semibold break-all">
          <Link to="/queues/$name" params={{ name: queue.name }} className="underline-offset-2 hover:underline">
            {queue.name}
          </Link>
        </h2>
        {queue.is_paused && (
          <Badge className="bg-blocked text-bg">
            <Pause aria-hidden className="size-3" /> paused
          </Badge>
        )}
        <span className="text-xs text-muted">
          {queue.is_paused ? "no jobs start until it is resumed" : workerSummary(queue)}
        </span>
        <div className="ml-auto flex items-center gap-1">
          {queue.is_paused
            ? onResume && (
                <Button variant="primary" onClick={() => onResume(queue.name)}>
                  <Play aria-hidden className="size-3.5" /> Resume
                </Button>
              )
            : onPause && (
                <Button onClick={() => onPause(queue.name)}>
                  <Pause aria-hidden className="size-3.5" /> Pause
                </Button>
              )}
          {onPurge && (
            <DropdownMenu
              trigger={
                <IconButton label={`More for ${queue.name}`}>
                  <MoreHorizontal className="size-4" />
                </IconButton>
              }
            >
              <MenuItem isDangerous isDisabled={waiting === 0} onSelect={() => onPurge(queue.name)}>
                <Trash2 aria-hidden className="size-3.5" /> Purge waiting jobs…
              </MenuItem>
            </DropdownMenu>
          )}
        </div>
      </header>
      <div className="flex flex-wrap items-end gap-x-8 gap-y-3 px-4 pt-1 pb-3">
        <dl className="grid flex-1 basis-full grid-cols-3 gap-x-4 gap-y-2 sm:grid-cols-4 lg:grid-cols-7 xl:basis-0">
          {JOB_STATES.map((state) => (
            <div key={state} className="min-w-20">
              <dt className="flex items-center gap-1.5 text-xs text-muted">
                <span
                  aria-hidden
                  className={classNames("size-1.5 rounded-full forced-color-adjust-none", JOB_STATE_STYLES[state].mark)}
                />
                {JOB_STATE_STYLES[state].label}
              </dt>
              <dd className={classNames("tabular-nums text-base", queue.stats[state] === 0 && "text-muted")}>
                <JobsLink filter={{ queue: queue.name, state }}>{formatShort(queue.stats[state])}</JobsLink>
              </dd>
            </div>
          ))}
        </dl>
        <dl className="grid grid-cols-3 items-end gap-x-6 gap-y-2 sm:flex sm:gap-x-4">
          <Metric name="Oldest wait">
            <WaitDuration ms={queue.oldest_wait_ms} at={at} />
          </Metric>
          <Metric name="In">{formatRate(queue.arrivals_per_second)}</Metric>
          <Metric name="Out">{formatRate(queue.services_per_second)}</Metric>
          <Metric name="Failure rate">
            <FailureRate value={queue.last_5m.failure_rate} />
          </Metric>
          <Metric name="Last hour">
            <Sparkline
              label={`${queue.name}, completed per minute`}
              values={queue.completed_per_minute}
              failed={queue.failed_per_minute}
              className="w-20"
            />
          </Metric>
        </dl>
      </div>
    </section>
  );
}

function Metric({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className="min-w-16 sm:w-20">
      <dt className="text-xs text-muted">{name}</dt>
      <dd className="tabular-nums flex h-6 items-center text-[13px] whitespace-nowrap">{children}</dd>
    </div>
  );
}

function workerSummary({ workers, slots, busy }: OverviewQueue): string {
  return workers === 0
    ? "no worker"
    : `${formatPlural(workers, "worker")}, ${busy} of ${formatPlural(slots, "slot")} busy`;
}

function FailureRate({ value }: { value: number | null }) {
  if (value === null) return "–";
  return <span className={isHighFailureRate(value) ? "font-medium text-failed" : ""}>{formatPercent(value)}</span>;
}
