/** When the steps of a workflow waited and ran, and which of them decided how long it took. */

import type { Workflow, WorkflowStep } from "@/api/workflows";
import { stretchesOf, type Stretch } from "@/lib/attempts";
import { isFinished } from "@/lib/states";

/** All moments in milliseconds; they never run backwards. */
export interface StepSpan {
  /** When all that it needs had ended. */
  readonly readyAt: number;
  readonly startedAt: number;
  /** Now, while it goes on. */
  readonly endedAt: number;
  readonly isOpen: boolean;
  /** Its attempts, each with the wait before it. Empty where they are not kept. */
  readonly stretches: readonly Stretch[];
  /** Told by the steps around it: a step over a list has no times of its own, nor has one whose record is gone. */
  readonly isGuessed: boolean;
}

type Timed = Pick<Workflow, "created_at" | "ended_at"> & {
  readonly steps: readonly Pick<
    WorkflowStep,
    "after" | "outcome" | "items" | "started_at" | "ended_at" | "status" | "executions"
  >[];
};

function ms(at: string): number {
  return new Date(at).getTime();
}

/** The span of every step, by its place; null for one that has not begun. A step comes after steps before it only. */
export function spansOf(workflow: Timed, now: number): readonly (StepSpan | null)[] {
  const spans: (StepSpan | null)[] = [];
  const nextStarts = firstStartsBehind(workflow);
  const end = workflow.ended_at === null ? now : ms(workflow.ended_at);
  workflow.steps.forEach((step, place) => {
    const before = step.after.map((other) => spans[other] ?? null);
    const readyAt = Math.max(ms(workflow.created_at), ...before.map((span) => span?.endedAt ?? 0));
    if (step.started_at !== null) {
      const stretches = stretchesOf(step.executions, readyAt, now);
      const startedAt = stretches[0]?.waitedUntil ?? Math.max(readyAt, ms(step.started_at));
      // One that waits for its next attempt goes on, too.
      const isOpen = step.ended_at === null && step.status !== null && !isFinished(step.status);
      const last = stretches.at(-1)?.ranUntil ?? startedAt;
      const endedAt = Math.max(last, isOpen ? now : step.ended_at === null ? last : ms(step.ended_at));
      spans.push({ readyAt, startedAt, endedAt, isOpen, stretches, isGuessed: false });
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
    spans.push({ ...span, stretches: [], isGuessed: true });
  });
  return spans;
}

/** When the first step started that comes after each. */
function firstStartsBehind({ steps }: Timed): readonly (number | undefined)[] {
  const starts: (number | undefined)[] = steps.map(() => undefined);
  for (const step of steps) {
    if (step.started_at === null) continue;
    const at = ms(step.started_at);
    for (const other of step.after) starts[other] = Math.min(at, starts[other] ?? at);
  }
  return starts;
}

/**
 * The chain of steps that ended last, each because of the one before: to be quicker, the workflow needs one of these to be
 * quicker. The first one first.
 */
export function criticalPath(
  steps: readonly Pick<WorkflowStep, "after">[],
  spans: readonly (StepSpan | null)[],
): readonly number[] {
  const path: number[] = [];
  let at = latest(
    steps.map((_, place) => place),
    spans,
  );
  while (at !== null) {
    path.unshift(at);
    at = latest(steps[at]?.after ?? [], spans);
  }
  return path;
}

/** The one that ended last; of several that go on, the one that began first. */
function latest(places: readonly number[], spans: readonly (StepSpan | null)[]): number | null {
  let found: number | null = null;
  for (const place of places) {
    const span = spans[place];
    if (!span) continue;
    const best = found === null ? null : (spans[found] ?? null);
    const isLater =
      best === null ||
      span.endedAt > best.endedAt ||
      (span.endedAt === best.endedAt && span.startedAt < best.startedAt);
    if (isLater) found = place;
  }
  return found;
}
