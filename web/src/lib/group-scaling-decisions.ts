/** Groups stored decisions of the autoscaler: those that changed nothing, one per minute, hide those that did. */

import type { ScalingDecision } from "@/api/scaling";

/** Decisions that follow each other, newest first. More than one only if none of them changed anything. */
export type DecisionGroup = readonly [ScalingDecision, ...ScalingDecision[]];

export function groupScalingDecisions(decisions: readonly ScalingDecision[]): readonly DecisionGroup[] {
  const groups: [ScalingDecision, ...ScalingDecision[]][] = [];
  for (const decision of decisions) {
    const last = groups.at(-1);
    if (last !== undefined && areAlike(last[0], decision)) last.push(decision);
    else groups.push([decision]);
  }
  return groups;
}

export function hasChangedPool({ launched, drained, terminated }: ScalingDecision): boolean {
  return launched.length + drained.length + terminated.length > 0;
}

function areAlike(one: ScalingDecision, other: ScalingDecision): boolean {
  return (
    !hasChangedPool(one) &&
    !hasChangedPool(other) &&
    one.wanted === other.wanted &&
    one.is_hold === other.is_hold &&
    one.is_paused === other.is_paused &&
    one.is_dry_run === other.is_dry_run
  );
}
