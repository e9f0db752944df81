/** How the steps of a workflow, and what undoes them, look. */

import type { WorkflowStep, WorkflowUndo } from "@/api/workflows";
import type { JobState } from "@/lib/states";

/** The state that a step shows: how it ended, or else that of its job. */
export function stateOf(step: Standing): JobState {
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

/** What a reader must know of first. */
const GRAVEST_FIRST: readonly JobState[] = [
  "FAILED",
  "PROCESSING",
  "PENDING",
  "SCHEDULED",
  "BLOCKED",
  "CANCELLED",
  "COMPLETED",
];

type Standing = Pick<WorkflowStep, "outcome" | "status" | "items">;

/** How many are in each state that any of them is in, the gravest first. */
export function byState(steps: readonly Standing[]): readonly (readonly [JobState, number])[] {
  const counts = new Map<JobState, number>();
  for (const step of steps) counts.set(stateOf(step), (counts.get(stateOf(step)) ?? 0) + 1);
  return GRAVEST_FIRST.flatMap((state) => {
    const many = counts.get(state);
    return many === undefined ? [] : [[state, many] as const];
  });
}

/** The state that many steps show together. */
export function gravest(steps: readonly Standing[]): JobState {
  return byState(steps)[0]?.[0] ?? "BLOCKED";
}

/** Something of it runs now: the step, or what undoes it. */
export function isRunning(step: Standing & { readonly undo: Pick<WorkflowUndo, "status"> | null }): boolean {
  return stateOf(step) === "PROCESSING" || step.undo?.status === "PROCESSING";
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
