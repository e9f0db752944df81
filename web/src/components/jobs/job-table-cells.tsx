/** The cells of a job row, shared by the table and the phone layout. */

import { createContext, useContext } from "react";

import type { Job } from "@/api/job-list";
import { ProgressBar } from "@/components/progress-bar";
import { AbsoluteTime, Duration, RelativeTime } from "@/components/relative-time-and-duration";
import { formatPlural } from "@/lib/format-number";
import type { JobState } from "@/lib/job-and-workflow-states";
import { summarizeArguments, UNKNOWN_PARAMETERS, type TaskParameters } from "@/lib/summarize-job-arguments";

const NOTHING = <span className="text-muted">–</span>;

/** The ID without the queue, which has its own column. */
export function shortId(job: Pick<Job, "jobId">): string {
  return job.jobId.slice(job.jobId.lastIndexOf(":") + 1);
}

const WAITING: ReadonlySet<JobState> = new Set(["SCHEDULED", "BLOCKED", "PENDING"]);

/** How the rows of a list are shown. */
export interface RowDisplay {
  /** Inside a chosen time range "8 h ago" would be the same in every row: the times themselves are shown. */
  readonly hasAbsoluteTimes: boolean;
  readonly parametersOf: (task: string) => TaskParameters;
}

const RowDisplayContext = createContext<RowDisplay>({
  hasAbsoluteTimes: false,
  parametersOf: () => UNKNOWN_PARAMETERS,
});

export const RowDisplayProvider = RowDisplayContext.Provider;

/** The start time of a scheduled job, otherwise the enqueue time. */
export function EnqueuedOrDue({ job }: { job: Job }) {
  const isDue = job.status === "SCHEDULED" && job.due_at !== null;
  const at = isDue ? job.due_at : job.enqueued_at;
  return useContext(RowDisplayContext).hasAbsoluteTimes ? <AbsoluteTime at={at} /> : <RelativeTime at={at} />;
}

/** The arguments, the indexed ones first. */
export function Arguments({ job }: { job: Job }) {
  const { parametersOf } = useContext(RowDisplayContext);
  const text = summarizeArguments(job.data, parametersOf(job.type));
  return (
    <span className="block truncate" title={text}>
      {text}
    </span>
  );
}

/** From the moment the job could start to the latest claim, or until now. */
export function Waited({ job }: { job: Job }) {
  const since = job.due_at ?? job.enqueued_at;
  if (job.status === "BLOCKED" || job.status === "PENDING") return <Duration from={since} />;
  if (job.status === "SCHEDULED" || job.claimed_at === null) return NOTHING;
  // A job that was brought forward was claimed before its due time.
  return <Duration from={since > job.claimed_at ? job.enqueued_at : since} until={job.claimed_at} />;
}

/** The duration of the latest attempt. */
export function Ran({ job }: { job: Job }) {
  if (job.claimed_at === null || WAITING.has(job.status)) return NOTHING;
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
