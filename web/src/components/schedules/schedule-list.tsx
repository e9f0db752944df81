/** The list of schedules: rule, next and recent runs, actions. */

import { MoreHorizontal, Pause, Pencil, Play, Trash2, Zap } from "lucide-react";
import type { ReactNode } from "react";

import type { Schedule } from "@/api/schedules";
import { Badge } from "@/components/badges";
import { Button, IconButton } from "@/components/buttons";
import { DropdownMenu, MenuItem } from "@/components/dropdown-menu";
import { JobLink, JobsLink } from "@/components/job-links";
import { RelativeTime } from "@/components/relative-time-and-duration";
import { formatRunTime, ruleTimeZone, type RunTimeZone } from "@/components/schedules/format-run-time";
import { classNames } from "@/lib/class-names";
import { formatCount } from "@/lib/format-number";
import { toSentence } from "@/lib/format-server-message";

export interface ScheduleActions {
  /** Undefined if the user's role does not allow it. */
  readonly onPause?: (schedule: Schedule) => void;
  readonly onResume?: (schedule: Schedule) => void;
  readonly onRun?: (schedule: Schedule) => void;
  readonly onEdit?: (schedule: Schedule) => void;
  readonly onRemove?: (schedule: Schedule) => void;
}

interface ScheduleListProps extends ScheduleActions {
  schedules: readonly Schedule[];
  zone: RunTimeZone;
  /** The outcomes of its latest jobs. */
  runsOf: (schedule: Schedule) => ReactNode;
}

const MISFIRE: Record<Schedule["misfire"], string> = {
  once: "missed runs are replaced by one job",
  all: "every missed run gets a job",
  skip: "missed runs are skipped",
};
const OVERLAP: Record<Schedule["overlap"], string> = {
  queue: "jobs are enqueued even while the previous one is running",
  skip: "no job is enqueued while the previous one is running",
};

export function ScheduleList({ schedules, zone, runsOf, ...actions }: ScheduleListProps) {
  return (
    <ul aria-label="Schedules" className="flex flex-col gap-3">
      {schedules.map((schedule) => (
        <li key={schedule.id}>
          <ScheduleCard schedule={schedule} zone={zone} runs={runsOf(schedule)} {...actions} />
        </li>
      ))}
    </ul>
  );
}

interface CardProps extends ScheduleActions {
  schedule: Schedule;
  zone: RunTimeZone;
  runs: ReactNode;
}

function ScheduleCard({ schedule, zone, runs, ...actions }: CardProps) {
  return (
    <section
      aria-label={schedule.id}
      className={classNames("rounded-lg border bg-surface", schedule.is_paused && "border-blocked")}
    >
      <header
        className={classNames(
          "flex flex-wrap items-center gap-x-3 gap-y-1 rounded-t-lg px-4 py-2",
          schedule.is_paused && "bg-blocked-soft",
        )}
      >
        <h2 className="min-w-0 font-semibold break-all">{schedule.name}</h2>
        <Badge>{schedule.queue}</Badge>
        {schedule.is_paused && <Badge className="bg-blocked text-bg">paused</Badge>}
        {schedule.is_orphaned && <Badge className="bg-failed-soft text-failed">orphaned</Badge>}
        <ActionButtons schedule={schedule} {...actions} />
      </header>
      {schedule.is_orphaned && (
        <p className="mx-4 mt-1 rounded-md bg-failed-soft px-3 py-2 text-[13px]">
          No running worker declares this schedule any more, so its jobs may find no worker that has their task. Remove
          it, or deploy the program that declares it.
        </p>
      )}
      <div className="grid gap-x-8 gap-y-3 px-4 pt-1 pb-3 md:grid-cols-2 xl:grid-cols-[minmax(0,1fr)_23rem_19rem]">
        <div className="min-w-0 md:col-span-2 xl:col-span-1">
          <p className="font-medium">{schedule.words}</p>
          <p className="text-[13px] break-all text-muted">
            runs{" "}
            <JobsLink filter={{ queue: schedule.queue, task: schedule.type }} className="link text-text">
              {schedule.type}
            </JobsLink>{" "}
            <code className="text-xs">{schedule.data}</code>
          </p>
          <dl className="mt-2 flex flex-wrap gap-x-6 gap-y-1 text-[13px]">
            <Property name="Last run">
              {schedule.last_job === null ? (
                "never"
              ) : (
                <JobLink id={schedule.last_job} className="link">
                  <RelativeTime at={schedule.last_run} />
                </JobLink>
              )}
            </Property>
            <Property name="Fired">{formatCount(schedule.fired)}</Property>
            <Property name="Skipped">{formatCount(schedule.skipped)}</Property>
            <Property name="Dropped">{formatCount(schedule.dropped)}</Property>
            <Property name="Declared">{schedule.is_declared ? "in code" : "at run time"}</Property>
          </dl>
          <p className="mt-2 text-xs text-muted">
            {toSentence(MISFIRE[schedule.misfire])}; {OVERLAP[schedule.overlap]}.
          </p>
        </div>
        {runs}
        <div className="min-w-0">
          <h3 className="text-xs text-muted">
            Next runs{zone === "own" && `, ${ruleTimeZone(schedule.rule)}`}
            {zone === "local" && ", local time"}
          </h3>
          {schedule.is_paused ? (
            <p className="text-[13px] text-muted">none while paused</p>
          ) : (
            <ol className="tabular-nums text-[13px]">
              {schedule.next_runs.slice(0, 5).map((at, index) => (
                <li key={at} className="flex flex-wrap gap-x-3 whitespace-nowrap">
                  {formatRunTime(at, zone)}
                  {index === 0 && (
                    <span className="text-muted">
                      <RelativeTime at={at} />
                    </span>
                  )}
                </li>
              ))}
            </ol>
          )}
        </div>
      </div>
    </section>
  );
}

function ActionButtons({
  schedule,
  onPause,
  onResume,
  onRun,
  onEdit,
  onRemove,
}: { schedule: Schedule } & ScheduleActions) {
  return (
    <div className="ml-auto flex items-center gap-1">
      {onRun && (
        <Button onClick={() => onRun(schedule)}>
          <Zap aria-hidden className="size-3.5" /> Run now
        </Button>
      )}
      {schedule.is_paused
        ? onResume && (
            <Button variant="primary" onClick={() => onResume(schedule)}>
              <Play aria-hidden className="size-3.5" /> Resume
            </Button>
          )
        : onPause && (
            <Button onClick={() => onPause(schedule)}>
              <Pause aria-hidden className="size-3.5" /> Pause
            </Button>
          )}
      {(onEdit ?? onRemove) && (
        <DropdownMenu
          trigger={
            <IconButton label={`More for ${schedule.name}`}>
              <MoreHorizontal className="size-4" />
            </IconButton>
          }
        >
          {onEdit && (
            <MenuItem onSelect={() => onEdit(schedule)}>
              <Pencil aria-hidden className="size-3.5" /> Edit…
            </MenuItem>
          )}
          {onRemove && (
            <MenuItem isDangerous onSelect={() => onRemove(schedule)}>
              <Trash2 aria-hidden className="size-3.5" /> Remove…
            </MenuItem>
          )}
        </DropdownMenu>
      )}
    </div>
  );
}

function Property({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className="flex gap-1.5">
      <dt className="text-muted">{name}</dt>
      <dd className="tabular-nums">{children}</dd>
    </div>
  );
}
