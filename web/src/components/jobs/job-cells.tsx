/** What a row says of a job: the same words in a wide table and on a phone. */

import type { Job } from "@/api/jobs";
import { Meter } from "@/components/meter";
import { Moment, Span } from "@/components/moment";
import { plural } from "@/lib/numbers";
import type { JobState } from "@/lib/states";

const PRIORITIES: Readonly<Record<number, string>> = {
  [-15]: "critical",
  [-10]: "high",
  [-5]: "medium",
  0: "normal",
  10: "low",
};

export function priorityName(priority: number): string {
  return PRIORITIES[priority] ?? String(priority);
}

/** The id without its queue, which has a column of its own. */
export function shortId(job: Pick<Job, "jobId">): string {
  return job.jobId.slice(job.jobId.lastIndexOf(":") + 1);
}

const WAITING: ReadonlySet<JobState> = new Set(["SCHEDULED", "BLOCKED", "PENDING"]);

/** When it will start, where that is known; else when it was enqueued. */
export function When({ job }: { job: Job }) {
  const isDue = job.status === "SCHEDULED" && job.due_at !== null;
  return <Moment at={isDue ? job.due_at : job.enqueued_at} />;
}

/** How long it has waited, or has run. */
export function Took({ job }: { job: Job }) {
  if (job.status === "SCHEDULED") return <span className="text-muted">–</span>;
  if (WAITING.has(job.status)) {
    return (
      <span className="text-muted">
        <Span from={job.due_at ?? job.enqueued_at} />
      </span>
    );
  }
  if (job.claimed_at === null) return <span className="text-muted">–</span>;
  return <Span from={job.claimed_at} until={job.ended_at} />;
}

/** Attempts so far, and what they came to. */
export function Attempts({ job }: { job: Job }) {
  const trouble = [
    job.failures > 0 && plural(job.failures, "failure"),
    job.stalls > 0 && plural(job.stalls, "stall"),
    job.snoozes > 0 && plural(job.snoozes, "snooze"),
  ].filter((part): part is string => part !== false);
  return (
    <span className="figures" title={[plural(job.attempt, "attempt"), ...trouble].join(", ")}>
      {job.attempt}
      {job.failures > 0 && <span className="text-failed"> · {job.failures} ✕</span>}
    </span>
  );
}

/** What matters most now: how far it is, why it failed, what it waits for. */
export function Note({ job }: { job: Job }) {
  if (job.status === "PROCESSING" && job.progress_detail !== null) {
    const { percent, note } = job.progress_detail;
    return (
      <span className="flex min-w-0 items-center gap-2">
        <Meter value={percent} label={`Progress of ${job.jobId}`} className="w-16 shrink-0" />
        <span className="figures shrink-0 text-xs">{percent} %</span>
        <span className="min-w-0 truncate text-muted">{note}</span>
      </span>
    );
  }
  if (job.error !== null && job.status !== "COMPLETED") {
    return (
      <span className="block truncate" title={`${job.error.type}: ${job.error.message}`}>
        <span className="text-failed">{job.error.type || job.error.kind}</span>
        <span className="text-muted"> {job.error.message}</span>
      </span>
    );
  }
  const words =
    job.reason ??
    (job.status === "BLOCKED" && job.dependencies.length > 0
      ? `after ${plural(job.dependencies.length, "job")}`
      : job.status === "BLOCKED" && job.lock !== null
        ? `lock ${job.lock}`
        : job.tags.join(", "));
  return (
    <span className="block truncate text-muted" title={words}>
      {words}
    </span>
  );
}
