/** The displayed state of workflow steps and their compensations. */

import type { WorkflowStep, WorkflowUndo } from "@/api/workflows";
import type { JobState } from "@/lib/job-and-workflow-states";

/** The displayed state of a step: its outcome, otherwise the state of its job. */
export function stepState(step: StepStatus): JobState {
  switch (step.outcome) {
    case "completed":
      return "COMPLETED";
    case "failed":
      return "FAILED";
    case "waiting":
      // A step over a list has no job of its own: it waits until the list is known.
      return step.status ?? (step.items === null ? "BLOCKED" : "PROCESSING");
    default:
      return "CANCELLED";
  }
}

/** States by severity, the most severe first. */
const BY_SEVERITY: readonly JobState[] = [
  "FAILED",
  "PROCESSING",
  "PENDING",
  "SCHEDULED",
  "BLOCKED",
  "CANCELLED",
  "COMPLETED",
];

type StepStatus = Pick<WorkflowStep, "outcome" | "status" | "items">;

/** The number of steps in each state, the most severe first. */
export function countByState(steps: readonly StepStatus[]): readonly (readonly [JobState, number])[] {
  const counts = new Map<JobState, number>();
  for (const step of steps) counts.set(stepState(step), (counts.get(stepState(step)) ?? 0) + 1);
  return BY_SEVERITY.flatMap((state) => {
    const many = counts.get(state);
    return many === undefined ? [] : [[state, many] as const];
  });
}

/** The state of a group: the most severe one. */
export function mostSevereState(steps: readonly StepStatus[]): JobState {
  return countByState(steps)[0]?.[0] ?? "BLOCKED";
}

/** Whether the step or its compensation is running. */
export function isRunning(step: StepStatus & { readonly undo: Pick<WorkflowUndo, "status"> | null }): boolean {
  return stepState(step) === "PROCESSING" || step.undo?.status === "PROCESSING";
}

/** "3 of 7 items"; null for a step that is one job. */
export function itemProgress(step: Pick<WorkflowStep, "items" | "items_done" | "jobId">): string | null {
  if (step.jobId !== null) return null;
  return step.items === null ? "list not known yet" : `${step.items_done ?? 0} of ${step.items} items`;
}

/** The label of a compensation, and the state it is shown as; null if it was never requested. */
export function undoStatus(undo: WorkflowUndo): { label: string; state: JobState | null } {
  switch (undo.state) {
    case "none":
      return { label: "can be undone", state: null };
    case "waiting":
      return { label: "undo pending or running", state: "PENDING" };
    case "completed":
      return { label: "undone", state: "COMPLETED" };
    case "failed":
      return { label: "undo failed", state: "FAILED" };
    default:
      return { label: `undo ${undo.state}`, state: "CANCELLED" };
  }
}
