import type { ReactNode } from "react";

import type { RunningJob, Worker } from "@/api/workers";
import { Badge } from "@/components/badge";
import { Button } from "@/components/button";
import { CopyButton } from "@/components/copy";
import { JobLink } from "@/components/links";
import { Meter } from "@/components/meter";
import { Moment, Span } from "@/components/moment";
import { classes } from "@/lib/classes";
import { bytes, count, percent } from "@/lib/numbers";
import { useNow } from "@/lib/now";
import { timeLeft } from "@/lib/progress";
import { duration } from "@/lib/time";

interface WorkerCardProps {
  worker: Worker;
  /** 1 is one core. */
  cpu: number | null;
  /** Absent where the reader may not, or it is draining already. */
  onDrain?: () => void;
}

const STATES: Record<string, readonly [label: string, look: string]> = {
  dead: ["dead", "bg-failed-soft text-failed"],
  stopped: ["stopped", "bg-cancelled-soft text-cancelled"],
  draining: ["draining", "bg-blocked-soft text-blocked"],
  busy: ["working", "bg-processing-soft text-processing"],
};

/** In one word. A worker that took its leave is not a dead one. */
function stateOf(worker: Worker): "dead" | "stopped" | "draining" | "busy" | "idle" {
  if (worker.state === "stopped") return "stopped";
  if (worker.status === "DEAD") return "dead";
  if (worker.state === "draining" || worker.state === "stopping") return "draining";
  return worker.busy > 0 || worker.running.length > 0 ? "busy" : "idle";
}

export function WorkerCard({ worker, cpu, onDrain }: WorkerCardProps) {
  const state = stateOf(worker);
  const [label, look] = STATES[state] ?? ["idle", "bg-completed-soft text-completed"];
  const isGone = state === "dead" || state === "stopped";
  return (
    <section aria-label={worker.id} className="rounded-lg border bg-surface">
      <header className="flex flex-wrap items-center gap-x-3 gap-y-1 px-4 pt-2.5">
        <h2 className="font-semibold break-all">{worker.name || worker.id}</h2>
        <Badge className={look}>{label}</Badge>
        <span className="flex min-w-0 items-center text-xs break-all text-muted">
          {worker.id} <CopyButton text={worker.id} label="Copy the worker's id" />
        </span>
        {onDrain && (
          <Button className="ml-auto" onClick={onDrain}>
            Drain
          </Button>
        )}
      </header>
      <dl className="grid grid-cols-2 gap-x-6 gap-y-2 px-4 py-2.5 sm:grid-cols-4 lg:grid-cols-8">
        <Fact name="Slots">
          <span className="figures">
            {worker.busy} of {worker.slots} busy
          </span>
          {worker.slots > 0 && !isGone && (
            <Meter value={(worker.busy / worker.slots) * 100} label="Slots that are busy" className="mt-1 max-w-24" />
          )}
        </Fact>
        <Fact name={isGone ? "Last heard of" : "Heartbeat"}>
          <Moment at={worker.last_seen} />
        </Fact>
        <Fact name="Started">
          <Moment at={worker.started_at} />
        </Fact>
        <Fact name="Finished">
          <span className="figures">{count(worker.finished)}</span>
        </Fact>
        <Fact name="CPU">
          <span className="figures">{cpu === null || isGone ? "–" : percent(cpu)}</span>
        </Fact>
        <Fact name="Memory">
          <span className="figures">{bytes(worker.rss_bytes)}</span>
        </Fact>
        <Fact name="Host">
          <span className="break-all">
            {worker.host}
            {worker.pid !== null && <span className="text-muted">, pid {worker.pid}</span>}
          </span>
        </Fact>
        <Fact name="Version">{worker.version || "–"}</Fact>
      </dl>
      <p className="flex flex-wrap gap-1 px-4 pb-2.5">
        <span className="sr-only">Serves</span>
        {worker.queues.map((queue) => (
          <Badge key={queue}>{queue}</Badge>
        ))}
      </p>
      {worker.running.length > 0 && <Running jobs={worker.running} count={worker.busy} isGone={isGone} />}
    </section>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className="min-w-0">
      <dt className="text-xs text-muted">{name}</dt>
      <dd className="text-[13px]">{children}</dd>
    </div>
  );
}

/** Jobs that are shown of one worker; it says how many more there are. */
const SHOWN = 20;

function Running({ jobs, count: all, isGone }: { jobs: readonly RunningJob[]; count: number; isGone: boolean }) {
  const shown = jobs.slice(0, SHOWN);
  return (
    <div className="border-t">
      <h3 className="px-4 pt-2 text-xs text-muted">{isGone ? "Was running" : "Runs now"}</h3>
      <ul className="divide-y divide-line/60">
        {shown.map((job) => (
          <li key={`${job.jobId}@${job.run}`} className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-1.5">
            <JobLink id={job.jobId} />
            <span className="text-[13px] text-muted">
              {job.type}
              {job.attempt > 1 && `, attempt ${job.attempt}`}
            </span>
            <span className="ml-auto text-[13px] text-muted">
              for <Span from={job.claimed_at} />
            </span>
            {job.progress_detail && <Progress progress={job.progress_detail} />}
          </li>
        ))}
      </ul>
      {all > shown.length && <p className="px-4 py-1.5 text-xs text-muted">and {count(all - shown.length)} more</p>}
    </div>
  );
}

function Progress({ progress }: { progress: NonNullable<RunningJob["progress_detail"]> }) {
  const left = timeLeft(progress, useNow());
  return (
    <span className={classes("flex w-full items-center gap-3 text-xs text-muted", "sm:w-80")}>
      <Meter value={progress.percent} label="Progress" className="flex-1" />
      <span className="figures w-9 text-right">{progress.percent} %</span>
      <span className="figures w-24 truncate">{left === null ? progress.note : `${duration(left)} left`}</span>
    </span>
  );
}
