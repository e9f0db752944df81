/** The critical path: the steps that determine how long a workflow takes. */

import type { WorkflowStep } from "@/api/workflows";
import type { StepSpan } from "@/lib/workflow-step-spans";

/**
 * The chain of steps that ended last, each started by the end of the previous one, in order: the workflow gets faster only
 * if one of them does.
 */
export function criticalPath(
  steps: readonly Pick<WorkflowStep, "after">[],
  spans: readonly (StepSpan | null)[],
): readonly number[] {
  const path: number[] = [];
  let at = latestEnding(
    steps.map((_, place) => place),
    spans,
  );
  while (at !== null) {
    path.unshift(at);
    at = latestEnding(steps[at]?.after ?? [], spans);
  }
  return path;
}

/** The step that ended last; of several running ones, the first started. */
function latestEnding(places: readonly number[], spans: readonly (StepSpan | null)[]): number | null {
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
