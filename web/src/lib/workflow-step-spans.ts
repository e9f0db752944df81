/** When the steps of a workflow waited and ran. */

import type { Workflow, WorkflowStep } from "@/api/workflows";
import { attemptSpans, type AttemptSpan } from "@/lib/attempt-spans";
import { isFinished } from "@/lib/job-and-workflow-states";

/** Times in milliseconds, never decreasing. */
export interface StepSpan {
  /** When all its dependencies had ended. */
  readonly readyAt: number;
  readonly startedAt: number;
  /** Now, while it runs. */
  readonly endedAt: number;
  readonly isOpen: boolean;
  /** Its attempts, each with the wait before it. Empty if they are not stored. */
  readonly attempts: readonly AttemptSpan[];
  /** Estimated from the neighbouring steps: a step over a list has no times of its own, nor has one without a record. */
  readonly isEstimated: boolean;
}

type TimelineWorkflow = Pick<Workflow, "created_at" | "ended_at"> & {
  readonly steps: readonly Pick<
    WorkflowStep,
    "after" | "outcome" | "items" | "started_at" | "ended_at" | "status" | "executions"
  >[];
};

function ms(at: string): number {
  return new Date(at).getTime();
}

/** The span of every step, by index; null if it has not started. Steps depend on earlier steps only. */
export function stepSpans(workflow: TimelineWorkflow, now: number): readonly (StepSpan | null)[] {
  const spans: (StepSpan | null)[] = [];
  const nextStarts = nextStartTimes(workflow);
  const end = workflow.ended_at === null ? now : ms(workflow.ended_at);
  workflow.steps.forEach((step, place) => {
    const before = step.after.map((other) => spans[other] ?? null);
    const readyAt = Math.max(ms(workflow.created_at), ...before.map((span) => span?.endedAt ?? 0));
    if (step.started_at !== null) {
      const attempts = attemptSpans(step.executions, readyAt, now);
      const startedAt = attempts[0]?.waitedUntil ?? Math.max(readyAt, ms(step.started_at));
      // A step that waits for its next attempt counts as running.
      const isOpen = step.ended_at === null && step.status !== null && !isFinished(step.status);
      const last = attempts.at(-1)?.ranUntil ?? startedAt;
      const endedAt = Math.max(last, isOpen ? now : step.ended_at === null ? last : ms(step.ended_at));
      spans.push({ readyAt, startedAt, endedAt, isOpen, attempts, isEstimated: false });
      return;
    }
    const hasBegun = step.outcome === "completed" || (step.items !== null && before.every((span) => span !== null));
    if (!hasBegun) {
      spans.push(null);
      return;
    }
    const isOpen = step.outcome === "waiting";
    const endedAt = isOpen ? end : Math.min(end, nextStarts[place] ?? end);
    const span = { readyAt, startedAt: readyAt, endedAt: Math.max(readyAt, endedAt), isOpen };
    spans.push({ ...span, attempts: [], isEstimated: true });
  });
  return spans;
}

/** The start of the first dependent of each step. */
function nextStartTimes({ steps }: TimelineWorkflow): readonly (number | undefined)[] {
  const starts: (number | undefined)[] = steps.map(() => undefined);
  for (const step of steps) {
    if (step.started_at === null) continue;
    const at = ms(step.started_at);
    for (const other of step.after) starts[other] = Math.min(at, starts[other] ?? at);
  }
  return starts;
}
