/** The cells of a job row, shared by the table and the phone layout. */

import type { Job } from "@/api/job-list";
import { ProgressBar } from "@/components/progress-bar";
import { RelativeTime, Duration } from "@/components/relative-time-and-duration";
import { formatPlural } from "@/lib/format-number";
import type { JobState } from "@/lib/job-and-workflow-states";

/** The ID without the queue, which has its own column. */
export function shortId(job: Pick<Job, "jobId">): string {
  return job.jobId.slice(job.jobId.lastIndexOf(":") + 1);
}

const WAITING: ReadonlySet<JobState> = new Set(["SCHEDULED", "BLOCKED", "PENDING"]);

/** The start time of a scheduled job, otherwise the enqueue time. */
export function EnqueuedOrDue({ job }: { job: Job }) {
  const isDue = job.status === "SCHEDULED" && job.due_at !== null;
  return <RelativeTime at={isDue ? job.due_at : job.enqueued_at} />;
}

/** The waiting time of a waiting job, otherwise the running time. */
export function WaitedOrRan({ job }: { job: Job }) {
  if (job.status === "SCHEDULED") return <span className="text-muted">–</span>;
  if (WAITING.has(job.status)) {
    return (
      <span className="text-muted">
        <Duration from={job.due_at ?? job.enqueued_at} />
      </span>
    );
  }
  if (job.claimed_at === null) return <span className="text-muted">–</span>;
  return <Duration from={job.claimed_at} until={job.ended_at} />;
}

/** The number of attempts, with failures, stalls and snoozes. */
export function AttemptCount({ job }: { job: Job }) {
  const problems = [
    job.failures > 0 && formatPlural(job.failures, "failure"),
    job.stalls > 0 && formatPlural(job.stalls, "stall"),
    job.snoozes > 0 && formatPlural(job.snoozes, "snooze"),
  ].filter((part): part is string => part !== false);
  return (
    <span className="tabular-nums" title={[formatPlural(job.attempt, "attempt"), ...problems].join(", ")}>
      {job.attempt}
      {job.failures > 0 && <span className="text-failed"> · {job.failures} ✕</span>}
    </span>
  );
}

/** The progress, the error, or what the job waits for. */
export function ErrorOrProgress({ job }: { job: Job }) {
  if (job.status === "PROCESSING" && job.progress !== null) {
    const { percent, note } = job.progress;
    return (
      <span className="flex min-w-0 items-center gap-2">
        <ProgressBar value={percent} label={`Progress of ${job.jobId}`} className="w-16 shrink-0" />
        <span className="tabular-nums shrink-0 text-xs">{percent} %</span>
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
      ? `after ${formatPlural(job.dependencies.length, "job")}`
      : job.status === "BLOCKED" && job.lock !== null
        ? `lock ${job.lock}`
        : job.tags.join(", "));
  return (
    <span className="block truncate text-muted" title={words}>
      {words}
    </span>
  );
}
