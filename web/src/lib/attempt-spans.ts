/** The waits and attempts of a job as time spans, for its timeline. */

import type { Job, JobAttempt } from "@/api/job-detail";
import { isFinished, JOB_STATE_STYLES, type JobState, type StateStyle } from "@/lib/job-and-workflow-states";

/** A wait and the attempt that followed. Times in milliseconds, never decreasing. */
export interface AttemptSpan {
  readonly key: string;
  readonly waitedFrom: number;
  /** End of the wait; it continues if there is no attempt and the job has not ended. */
  readonly waitedUntil: number;
  readonly ranUntil: number;
  readonly attempt: JobAttempt | null;
  /** Still waiting or running. */
  readonly isOpen: boolean;
}

export interface JobTimeline {
  readonly from: number;
  readonly until: number;
  readonly spans: readonly AttemptSpan[];
}

/** The state that the outcome of an attempt is shown as. */
const OUTCOME_STATES: Readonly<Record<JobAttempt["outcome"], JobState>> = {
  running: "PROCESSING",
  completed: "COMPLETED",
  failed: "FAILED",
  stalled: "FAILED",
  snoozed: "SCHEDULED",
  returned: "PENDING",
  cancelled: "CANCELLED",
};

export function outcomeTone(outcome: JobAttempt["outcome"]): StateStyle {
  return JOB_STATE_STYLES[OUTCOME_STATES[outcome]];
}

type TimelineJob = Pick<Job, "status" | "enqueued_at" | "ended_at" | "attempts">;

function ms(at: string): number {
  return new Date(at).getTime();
}

/** Every attempt with the wait before it, the first of which began at `from`. */
export function attemptSpans(attempts: readonly JobAttempt[], from: number, now: number): readonly AttemptSpan[] {
  let at = from;
  return attempts.map((attempt, place) => {
    const waitedFrom = at;
    const waitedUntil = Math.max(at, ms(attempt.started_at));
    const isOpen = attempt.ended_at === null;
    at = Math.max(waitedUntil, attempt.ended_at === null ? now : ms(attempt.ended_at));
    return { key: `${attempt.attempt}-${place}`, waitedFrom, waitedUntil, ranUntil: at, attempt, isOpen };
  });
}

/** Only the latest attempts are stored: of a job with many, the first wait shown includes the earlier ones. */
export function jobTimeline(job: TimelineJob, now: number): JobTimeline {
  const from = ms(job.enqueued_at);
  const spans = [...attemptSpans(job.attempts, from, now)];
  let at = spans.at(-1)?.ranUntil ?? from;
  if (!isFinished(job.status) && job.status !== "PROCESSING") {
    const until = Math.max(at, now);
    spans.push({ key: "waits", waitedFrom: at, waitedUntil: until, ranUntil: until, attempt: null, isOpen: true });
    at = until;
  }
  // A job that never ran waited until it ended.
  const ended = Math.max(at, job.ended_at === null ? at : ms(job.ended_at));
  if (spans.length === 0)
    spans.push({
      key: "waited",
      waitedFrom: from,
      waitedUntil: ended,
      ranUntil: ended,
      attempt: null,
      isOpen: false,
    });
  return { from, until: Math.max(ended, from + 1), spans };
}
