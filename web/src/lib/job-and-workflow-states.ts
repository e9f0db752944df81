/** The states of jobs and workflows, and the label and colours of each. A missing state does not compile. */

import type { components } from "@/api/schema";

export type JobState = components["schemas"]["Job"]["status"];
export type WorkflowState = components["schemas"]["WorkflowInfo"]["state"];

export interface StateStyle {
  readonly label: string;
  readonly meaning: string;
  /** Text and its soft background. */
  readonly badge: string;
  /** A filled mark: dots, bars. */
  readonly mark: string;
  /** The CSS variable, for charts and graphs. */
  readonly variable: string;
}

function stateStyle(name: string, label: string, meaning: string, badge: string, mark: string): StateStyle {
  return { label, meaning, badge, mark, variable: `--${name}` };
}

const scheduled = ["text-scheduled bg-scheduled-soft", "bg-scheduled"] as const;
const blocked = ["text-blocked bg-blocked-soft", "bg-blocked"] as const;
const pending = ["text-pending bg-pending-soft", "bg-pending"] as const;
const processing = ["text-processing bg-processing-soft", "bg-processing"] as const;
const completed = ["text-completed bg-completed-soft", "bg-completed"] as const;
const failed = ["text-failed bg-failed-soft", "bg-failed"] as const;
const cancelled = ["text-cancelled bg-cancelled-soft", "bg-cancelled"] as const;

export const JOB_STATE_STYLES: Record<JobState, StateStyle> = {
  SCHEDULED: stateStyle("scheduled", "scheduled", "waiting for its start time", ...scheduled),
  BLOCKED: stateStyle("blocked", "blocked", "waiting for another job or a lock", ...blocked),
  PENDING: stateStyle("pending", "pending", "ready to start", ...pending),
  PROCESSING: stateStyle("processing", "processing", "running on a worker", ...processing),
  COMPLETED: stateStyle("completed", "completed", "succeeded", ...completed),
  FAILED: stateStyle("failed", "failed", "failed, no retries left", ...failed),
  CANCELLED: stateStyle("cancelled", "cancelled", "cancelled by request, or can no longer start", ...cancelled),
};

export const JOB_STATES = Object.keys(JOB_STATE_STYLES) as JobState[];

const FINISHED: ReadonlySet<JobState> = new Set(["COMPLETED", "FAILED", "CANCELLED"]);

/** True for final states; only a redrive changes them. */
export function isFinished(state: JobState): boolean {
  return FINISHED.has(state);
}

export const WORKFLOW_STATE_STYLES: Record<WorkflowState, StateStyle> = {
  WAITING: stateStyle(
    "pending",
    "waiting",
    "waiting: the limit of concurrent workflows with this name is reached",
    ...pending,
  ),
  RUNNING: stateStyle("processing", "running", "steps are running", ...processing),
  COMPLETED: stateStyle("completed", "completed", "all steps succeeded", ...completed),
  FAILED: stateStyle("failed", "held", "a step failed; waiting to be resumed", ...failed),
  UNDOING: stateStyle("blocked", "undoing", "completed steps are being undone", ...blocked),
  PARKED: stateStyle("failed", "parked", "a compensation keeps failing; needs manual action", ...failed),
  UNDONE: stateStyle("cancelled", "undone", "completed steps have been undone", ...cancelled),
  CANCELLED: stateStyle("cancelled", "cancelled", "cancelled by request", ...cancelled),
};

export const WORKFLOW_STATES = Object.keys(WORKFLOW_STATE_STYLES) as WorkflowState[];
