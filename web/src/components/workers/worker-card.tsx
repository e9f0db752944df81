/** One worker: state, slots, queues, CPU, memory and running jobs. */

import type { ReactNode } from "react";

import type { RunningJob, Worker } from "@/api/workers";
import { Badge, JobStateBadge } from "@/components/badges";
import { Button } from "@/components/buttons";
import { CopyButton } from "@/components/copy-button";
import { JobLink } from "@/components/job-links";
import { ProgressBar } from "@/components/progress-bar";
import { RelativeTime, Duration } from "@/components/relative-time-and-duration";
import { classNames } from "@/lib/class-names";
import { estimatedTimeLeft } from "@/lib/estimated-time-left";
import { formatBytes, formatCount, formatPercent } from "@/lib/format-number";
import { formatDuration } from "@/lib/format-time";
import { useNow } from "@/lib/server-clock";

interface WorkerCardProps {
  worker: Worker;
  /** 1 is one core. */
  cpu: number | null;
  /** Undefined if the user's role does not allow it, or the worker is draining. */
  onDrain?: () => void;
}

const STATE_BADGES: Record<string, readonly [label: string, look: string]> = {
  dead: ["dead", "bg-failed-soft text-failed"],
  stopped: ["stopped", "bg-cancelled-soft text-cancelled"],
  error: ["error", "bg-failed-soft text-failed"],
  draining: ["draining", "bg-blocked-soft text-blocked"],
  busy: ["working", "bg-processing-soft text-processing"],
};

/** The state in one word. A worker that stopped regularly is not dead. */
function workerState(worker: Worker): "dead" | "stopped" | "error" | "draining" | "busy" | "idle" {
  if (worker.state === "stopped") return "stopped";
  if (worker.status === "DEAD") return "dead";
  if (worker.state === "error") return "error";
  if (worker.state === "draining" || worker.state === "stopping") return "draining";
  return worker.busy > 0 || worker.running.length > 0 ? "busy" : "idle";
}

export function WorkerCard({ worker, cpu, onDrain }: WorkerCardProps) {
  const state = workerState(worker);
  const [label, look] = STATE_BADGES[state] ?? ["idle", "bg-completed-soft text-completed"];
  const isGone = state === "dead" || state === "stopped";
  return (
    <section id={worker.id} aria-label={worker.id} className="scroll-mt-14 rounded-lg border bg-surface">
      <header className="flex flex-wrap items-center gap-x-3 gap-y-1 px-4 pt-2.5">
        <h2 className="font-semibold break-all">{worker.name || worker.id}</h2>
        <Badge className={look}>{label}</Badge>
        <span className="flex min-w-0 items-center text-xs break-all text-muted">
          {worker.id} <CopyButton text={worker.id} label="Copy worker ID" />
        </span>
        {onDrain && (
          <Button className="ml-auto" onClick={onDrain}>
            Drain
          </Button>
        )}
      </header>
      <dl className="grid grid-cols-2 gap-x-6 gap-y-2 px-4 py-2.5 sm:grid-cols-4 lg:grid-cols-8">
        <Property name="Slots">
          <span className="tabular-nums">
            {worker.busy} of {worker.slots} busy
          </span>
          {worker.slots > 0 && !isGone && (
            <ProgressBar value={(worker.busy / worker.slots) * 100} label="Busy slots" className="mt-1 max-w-24" />
          )}
        </Property>
        <Property name={isGone ? "Last seen" : "Heartbeat"}>
          <RelativeTime at={worker.last_seen} />
        </Property>
        <Property name="Started">
          <RelativeTime at={worker.started_at} />
        </Property>
        <Property name="Finished">
          <span className="tabular-nums">{formatCount(worker.finished)}</span>
        </Property>
        <Property name="CPU">
          <span className="tabular-nums">{cpu === null || isGone ? "–" : formatPercent(cpu)}</span>
        </Property>
        <Property name="Memory">
          <span className="tabular-nums">{formatBytes(worker.rss_bytes)}</span>
        </Property>
        <Property name="Host">
          <span className="break-all">
            {worker.host}
            {worker.pid !== null && <span className="text-muted">, pid {worker.pid}</span>}
          </span>
        </Property>
        <Property name="Version">{worker.code_version ?? (worker.version || "–")}</Property>
      </dl>
      <p className="flex flex-wrap gap-1 px-4 pb-2.5">
        <span className="sr-only">Serves</span>
        {worker.queues.map((queue) => (
          <Badge key={queue}>{queue}</Badge>
        ))}
      </p>
      {isGone && worker.lost_jobs.length > 0 && <LostJobs jobs={worker.lost_jobs} />}
      {worker.running.length > 0 && !(isGone && worker.lost_jobs.length > 0) && (
        <RunningJobs jobs={worker.running} count={worker.busy} isGone={isGone} />
      )}
    </section>
  );
}

/** The jobs that a dead worker was running, and what became of each. */
function LostJobs({ jobs }: { jobs: Worker["lost_jobs"] }) {
  return (
    <div className="border-t">
      <h3 className="px-4 pt-2 text-xs text-muted">Was running, and what became of it</h3>
      <ul aria-label="Lost jobs" className="divide-y divide-line/60">
        {jobs.slice(0, MAX_SHOWN).map((job) => (
          <li key={`${job.jobId}@${job.run}`} className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-1.5">
            <JobLink id={`${job.jobId}@${job.run}`} />
            <span className="text-[13px] text-muted">{job.type}</span>
            <span className="ml-auto">
              {job.status === null ? <Badge>no longer stored</Badge> : <JobStateBadge state={job.status} />}
            </span>
          </li>
        ))}
      </ul>
      {jobs.length > MAX_SHOWN && (
        <p className="px-4 py-1.5 text-xs text-muted">and {formatCount(jobs.length - MAX_SHOWN)} more</p>
      )}
    </div>
  );
}

function Property({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className="min-w-0">
      <dt className="text-xs text-muted">{name}</dt>
      <dd className="text-[13px]">{children}</dd>
    </div>
  );
}

/** Maximum number of running jobs shown; the rest is counted. */
const MAX_SHOWN = 20;

function RunningJobs({ jobs, count: all, isGone }: { jobs: readonly RunningJob[]; count: number; isGone: boolean }) {
  const shown = jobs.slice(0, MAX_SHOWN);
  return (
    <div className="border-t">
      <h3 className="px-4 pt-2 text-xs text-muted">{isGone ? "Was running" : "Running now"}</h3>
      <ul className="divide-y divide-line/60">
        {shown.map((job) => (
          <li key={`${job.jobId}@${job.run}`} className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-1.5">
            <JobLink id={job.jobId} />
            <span className="text-[13px] text-muted">
              {job.type}
              {job.attempt > 1 && `, attempt ${job.attempt}`}
            </span>
            <span className="ml-auto text-[13px] text-muted">
              for <Duration from={job.claimed_at} />
            </span>
            {job.progress && <Progress progress={job.progress} />}
          </li>
        ))}
      </ul>
      {all > shown.length && (
        <p className="px-4 py-1.5 text-xs text-muted">and {formatCount(all - shown.length)} more</p>
      )}
    </div>
  );
}

function Progress({ progress }: { progress: NonNullable<RunningJob["progress"]> }) {
  const left = estimatedTimeLeft(progress, useNow());
  return (
    <span className={classNames("flex w-full items-center gap-3 text-xs text-muted", "sm:w-80")}>
      <ProgressBar value={progress.percent} label="Progress" className="flex-1" />
      <span className="tabular-nums w-9 text-right">{progress.percent} %</span>
      <span className="tabular-nums w-24 truncate">
        {left === null ? progress.note : `${formatDuration(left)} left`}
      </span>
    </span>
  );
}
