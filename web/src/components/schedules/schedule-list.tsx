import { MoreHorizontal, Pause, Pencil, Play, Trash2, Zap } from "lucide-react";
import type { ReactNode } from "react";

import type { Schedule } from "@/api/schedules";
import { Badge } from "@/components/badge";
import { Button, IconButton } from "@/components/button";
import { JobLink, JobsLink } from "@/components/links";
import { Menu, MenuItem } from "@/components/menu";
import { Moment } from "@/components/moment";
import { told, zoneOf, type TimesIn } from "@/components/schedules/times";
import { classes } from "@/lib/classes";
import { sentence } from "@/lib/explanation";
import { count } from "@/lib/numbers";

export interface ScheduleActions {
  /** Absent where the reader may not. */
  readonly onPause?: (schedule: Schedule) => void;
  readonly onResume?: (schedule: Schedule) => void;
  readonly onRun?: (schedule: Schedule) => void;
  readonly onEdit?: (schedule: Schedule) => void;
  readonly onRemove?: (schedule: Schedule) => void;
}

interface ScheduleListProps extends ScheduleActions {
  schedules: readonly Schedule[];
  zone: TimesIn;
  /** What became of its latest jobs. */
  runsOf: (schedule: Schedule) => ReactNode;
}

const MISFIRE: Record<Schedule["misfire"], string> = {
  once: "missed times are made up for by one job",
  all: "every missed time gets its job",
  skip: "missed times are skipped",
};
const OVERLAP: Record<Schedule["overlap"], string> = {
  queue: "the next job comes even while the last one runs",
  skip: "no job comes while the last one runs",
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
  zone: TimesIn;
  runs: ReactNode;
}

function ScheduleCard({ schedule, zone, runs, ...actions }: CardProps) {
  return (
    <section
      aria-label={schedule.id}
      className={classes("rounded-lg border bg-surface", schedule.is_paused && "border-blocked")}
    >
      <header
        className={classes(
          "flex flex-wrap items-center gap-x-3 gap-y-1 rounded-t-lg px-4 py-2",
          schedule.is_paused && "bg-blocked-soft",
        )}
      >
        <h2 className="min-w-0 font-semibold break-all">{schedule.name}</h2>
        <Badge>{schedule.queue}</Badge>
        {schedule.is_paused && <Badge className="bg-blocked text-bg">paused</Badge>}
        {schedule.is_orphaned && <Badge className="bg-failed-soft text-failed">orphaned</Badge>}
        <Buttons schedule={schedule} {...actions} />
      </header>
      {schedule.is_orphaned && (
        <p className="mx-4 mt-1 rounded-md bg-failed-soft px-3 py-2 text-[13px]">
          No program that runs declares this schedule any more, so its jobs may find no worker that knows their task.
          Remove it, or deploy the program that has it.
        </p>
      )}
      <div className="grid gap-x-8 gap-y-3 px-4 pt-1 pb-3 md:grid-cols-2 xl:grid-cols-[1fr_16rem_19rem]">
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
            <Fact name="Last run">
              {schedule.last_job === null ? (
                "never"
              ) : (
                <JobLink id={schedule.last_job} className="link">
                  <Moment at={schedule.last_run} />
                </JobLink>
              )}
            </Fact>
            <Fact name="Fired">{count(schedule.fired)}</Fact>
            <Fact name="Skipped">{count(schedule.skipped)}</Fact>
            <Fact name="Dropped">{count(schedule.dropped)}</Fact>
            <Fact name="Declared">{schedule.is_declared ? "in code" : "at run time"}</Fact>
          </dl>
          <p className="mt-2 text-xs text-muted">
            {sentence(MISFIRE[schedule.misfire])}; {OVERLAP[schedule.overlap]}.
          </p>
        </div>
        {runs}
        <div className="min-w-56">
          <h3 className="text-xs text-muted">
            Next runs{zone === "own" && `, ${zoneOf(schedule.rule)}`}
            {zone === "local" && ", local time"}
          </h3>
          {schedule.is_paused ? (
            <p className="text-[13px] text-muted">none while it is paused</p>
          ) : (
            <ol className="figures text-[13px]">
              {schedule.next_runs.slice(0, 5).map((at, index) => (
                <li key={at} className="flex gap-3 whitespace-nowrap">
                  {told(at, zone)}
                  {index === 0 && (
                    <span className="text-muted">
                      <Moment at={at} />
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

function Buttons({ schedule, onPause, onResume, onRun, onEdit, onRemove }: { schedule: Schedule } & ScheduleActions) {
  return (
    <div className="ml-auto flex items-center gap-1">
      {onRun && (
        <Button onClick={() => onRun(schedule)}>
          <Zap aria-hidden className="size-3.5" /> Run now
        </Button>
      )}
      {schedule.is_paused
        ? onResume && (
            <Button look="primary" onClick={() => onResume(schedule)}>
              <Play aria-hidden className="size-3.5" /> Resume
            </Button>
          )
        : onPause && (
            <Button onClick={() => onPause(schedule)}>
              <Pause aria-hidden className="size-3.5" /> Pause
            </Button>
          )}
      {(onEdit ?? onRemove) && (
        <Menu
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
        </Menu>
      )}
    </div>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className="flex gap-1.5">
      <dt className="text-muted">{name}</dt>
      <dd className="figures">{children}</dd>
    </div>
  );
}
