/** The life of a job as stretches of waiting and running, for its timeline. */

import type { Job, JobAttempt } from "@/api/job";
import { isFinished, JOB_TONES, type JobState, type Tone } from "@/lib/states";

/** A wait, and the run that ended it. All moments in milliseconds; they never run backwards. */
export interface Stretch {
  readonly key: string;
  readonly waitedFrom: number;
  /** Where the wait ended; the wait goes on where there is no attempt and the job has not ended. */
  readonly waitedUntil: number;
  readonly ranUntil: number;
  readonly attempt: JobAttempt | null;
  /** Something of it goes on. */
  readonly isOpen: boolean;
}

export interface Life {
  readonly from: number;
  readonly until: number;
  readonly stretches: readonly Stretch[];
}

/** How an attempt looks. */
const TONES: Readonly<Record<JobAttempt["outcome"], JobState>> = {
  running: "PROCESSING",
  completed: "COMPLETED",
  failed: "FAILED",
  stalled: "FAILED",
  snoozed: "SCHEDULED",
  returned: "PENDING",
  cancelled: "CANCELLED",
};

export function toneOf(outcome: JobAttempt["outcome"]): Tone {
  return JOB_TONES[TONES[outcome]];
}

type Living = Pick<Job, "status" | "enqueued_at" | "ended_at" | "attempts">;

function ms(at: string): number {
  return new Date(at).getTime();
}

/** Every attempt with the wait before it, the first of which began at `from`. */
export function stretchesOf(attempts: readonly JobAttempt[], from: number, now: number): readonly Stretch[] {
  let at = from;
  return attempts.map((attempt, place) => {
    const waitedFrom = at;
    const waitedUntil = Math.max(at, ms(attempt.started_at));
    const isOpen = attempt.ended_at === null;
    at = Math.max(waitedUntil, attempt.ended_at === null ? now : ms(attempt.ended_at));
    return { key: `${attempt.attempt}-${place}`, waitedFrom, waitedUntil, ranUntil: at, attempt, isOpen };
  });
}

/** Of a long life only the latest attempts are kept: then the first wait that is shown is longer than it was. */
export function lifeOf(job: Living, now: number): Life {
  const from = ms(job.enqueued_at);
  const stretches = [...stretchesOf(job.attempts, from, now)];
  let at = stretches.at(-1)?.ranUntil ?? from;
  if (!isFinished(job.status) && job.status !== "PROCESSING") {
    const until = Math.max(at, now);
    stretches.push({ key: "waits", waitedFrom: at, waitedUntil: until, ranUntil: until, attempt: null, isOpen: true });
    at = until;
  }
  // What never ran has waited until it ended.
  const ended = Math.max(at, job.ended_at === null ? at : ms(job.ended_at));
  if (stretches.length === 0)
    stretches.push({
      key: "waited",
      waitedFrom: from,
      waitedUntil: ended,
      ranUntil: ended,
      attempt: null,
      isOpen: false,
    });
  return { from, until: Math.max(ended, from + 1), stretches };
}
