/** How each state looks. A state that is missing here does not compile. */

import type { components } from "@/api/schema";

export type JobState = components["schemas"]["Job"]["status"];
export type WorkflowState = components["schemas"]["WorkflowInfo"]["state"];

export interface Tone {
  readonly label: string;
  readonly meaning: string;
  /** Text and its soft background. */
  readonly badge: string;
  /** A filled mark: dots, bars. */
  readonly mark: string;
  /** The CSS variable, for charts and graphs. */
  readonly variable: string;
}

function tone(name: string, label: string, meaning: string, badge: string, mark: string): Tone {
  return { label, meaning, badge, mark, variable: `--${name}` };
}

const scheduled = ["text-scheduled bg-scheduled-soft", "bg-scheduled"] as const;
const blocked = ["text-blocked bg-blocked-soft", "bg-blocked"] as const;
const pending = ["text-pending bg-pending-soft", "bg-pending"] as const;
const processing = ["text-processing bg-processing-soft", "bg-processing"] as const;
const completed = ["text-completed bg-completed-soft", "bg-completed"] as const;
const failed = ["text-failed bg-failed-soft", "bg-failed"] as const;
const cancelled = ["text-cancelled bg-cancelled-soft", "bg-cancelled"] as const;

export const JOB_TONES: Record<JobState, Tone> = {
  SCHEDULED: tone("scheduled", "scheduled", "waits for its time", ...scheduled),
  BLOCKED: tone("blocked", "blocked", "waits for another job", ...blocked),
  PENDING: tone("pending", "pending", "may start now", ...pending),
  PROCESSING: tone("processing", "processing", "runs on a worker", ...processing),
  COMPLETED: tone("completed", "completed", "succeeded", ...completed),
  FAILED: tone("failed", "failed", "failed for good", ...failed),
  CANCELLED: tone("cancelled", "cancelled", "ended by request, or can no longer start", ...cancelled),
};

export const JOB_STATES = Object.keys(JOB_TONES) as JobState[];

const FINISHED: ReadonlySet<JobState> = new Set(["COMPLETED", "FAILED", "CANCELLED"]);

/** Nothing happens to it any more, unless somebody redrives it. */
export function isFinished(state: JobState): boolean {
  return FINISHED.has(state);
}

export const WORKFLOW_TONES: Record<WorkflowState, Tone> = {
  WAITING: tone("pending", "waiting", "waits for a place among those of its name", ...pending),
  RUNNING: tone("processing", "running", "its steps are being run", ...processing),
  COMPLETED: tone("completed", "completed", "all steps succeeded", ...completed),
  FAILED: tone("failed", "held", "a step failed for good; it waits to be resumed", ...failed),
  UNDOING: tone("blocked", "undoing", "what was done is being compensated", ...blocked),
  PARKED: tone("failed", "parked", "a compensation keeps failing and needs a person", ...failed),
  UNDONE: tone("cancelled", "undone", "what was done has been compensated", ...cancelled),
  CANCELLED: tone("cancelled", "cancelled", "ended by request", ...cancelled),
};

export const WORKFLOW_STATES = Object.keys(WORKFLOW_TONES) as WorkflowState[];
