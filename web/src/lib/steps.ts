/** How the steps of a workflow, and what undoes them, look. */

import type { WorkflowStep, WorkflowUndo } from "@/api/workflows";
import type { JobState } from "@/lib/states";

/** The state that a step shows: how it ended, or else that of its job. */
export function stateOf(step: Pick<WorkflowStep, "outcome" | "status" | "items">): JobState {
  switch (step.outcome) {
    case "completed":
      return "COMPLETED";
    case "failed":
      return "FAILED";
    case "waiting":
      // A step over a list is none of the jobs: it waits until the list is known.
      return step.status ?? (step.items === null ? "BLOCKED" : "PROCESSING");
    default:
      return "CANCELLED";
  }
}

/** "3 of 7 items"; null for a step that is one job. */
export function itemsOf(step: Pick<WorkflowStep, "items" | "items_done" | "jobId">): string | null {
  if (step.jobId !== null) return null;
  return step.items === null ? "a list, not known yet" : `${step.items_done ?? 0} of ${step.items} items`;
}

/** What is said of a compensation, and the state it looks like. Null: it was never wanted. */
export function undoWords(undo: WorkflowUndo): { words: string; state: JobState | null } {
  switch (undo.state) {
    case "none":
      return { words: "can be undone", state: null };
    case "waiting":
      return { words: "undo waits or runs", state: "PENDING" };
    case "completed":
      return { words: "undone", state: "COMPLETED" };
    case "failed":
      return { words: "undo failed", state: "FAILED" };
    default:
      return { words: `undo ${undo.state}`, state: "CANCELLED" };
  }
}
