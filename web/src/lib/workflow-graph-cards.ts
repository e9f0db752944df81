/** The cards of the workflow graph: one per step, one per group of similar steps, none for hidden steps. */

import type { WorkflowStep } from "@/api/workflows";

/** More similar steps than this are grouped on one card. */
const MAX_UNGROUPED = 6;

type Step = Pick<WorkflowStep, "type" | "queue" | "jobId" | "after" | "outcome"> & {
  /** Null for a step without compensation. */
  readonly undo: object | null;
};

/** Indexes of steps that differ only in their name. The first index identifies the group. */
export type StepGroup = readonly [number, ...number[]];

export interface Card {
  /** Stable while groups are expanded and steps are hidden. */
  readonly key: string;
  /** The group it represents; null for a single step. */
  readonly group: number | null;
  /** Indexes of the visible steps: one, all of a collapsed group, or the visible ones of an expanded group. */
  readonly steps: readonly [number, ...number[]];
  /** Number of steps it represents, including hidden ones of an expanded group. */
  readonly total: number;
  readonly isOpen: boolean;
  readonly hasUndo: boolean;
  /** Indexes of the cards it depends on. */
  readonly after: readonly number[];
}

export interface CardOptions {
  readonly isDoneHidden: boolean;
  /** The expanded groups. */
  readonly open: "all" | ReadonlySet<number>;
}

export function isDone({ outcome }: Pick<WorkflowStep, "outcome">): boolean {
  return outcome === "completed";
}

export function isOpen({ open }: Pick<CardOptions, "open">, group: number): boolean {
  return open === "all" || open.has(group);
}

/** Groups steps with the same task, the same dependencies and the same dependents. */
export function groupSteps(steps: readonly Step[]): readonly StepGroup[] {
  const dependents: number[][] = steps.map(() => []);
  steps.forEach(({ after }, place) => after.forEach((other) => dependents[other]?.push(place)));
  const alike = new Map<string, [number, ...number[]]>();
  steps.forEach(({ type, queue, jobId, undo, after }, place) => {
    const likeness = [type, queue, jobId === null, undo !== null, after.toSorted(ascending), dependents[place]];
    const key = JSON.stringify(likeness);
    const others = alike.get(key);
    if (others === undefined) alike.set(key, [place]);
    else others.push(place);
  });
  return [...alike.values()].filter((group) => group.length > MAX_UNGROUPED);
}

/**
 * The cards in topological order. Steps depend on earlier steps only, and the steps of a group on the same ones, so
 * there is no cycle.
 */
export function buildCards(steps: readonly Step[], groups: readonly StepGroup[], view: CardOptions): readonly Card[] {
  const groupAt = new Map(groups.flatMap((group) => group.map((place) => [place, group] as const)));
  const isHidden = (place: number) => view.isDoneHidden && isDone(steps[place] as Step);
  const cards: Card[] = [];
  const cardAt = new Map<number, number>();
  // The cards that represent a step as a dependency: its own or, if it is hidden, those of its dependencies.
  const before: (readonly number[])[] = [];
  steps.forEach((step, place) => {
    const after = [...new Set(step.after.flatMap((other) => before[other] ?? []))];
    const group = groupAt.get(place);
    const first = group?.[0] ?? null;
    const opened = first !== null && isOpen(view, first);
    const isSeen = group === undefined ? !isHidden(place) : group.some((one) => !isHidden(one));
    if (!isSeen) {
      before.push(after);
      return;
    }
    const known = first === null ? undefined : cardAt.get(first);
    if (known !== undefined) {
      before.push([known]);
      return;
    }
    const seen = (group ?? [place]).filter((one) => !opened || !isHidden(one));
    cardAt.set(place, cards.length);
    before.push([cards.length]);
    cards.push({
      key: String(place),
      group: first,
      steps: seen as unknown as Card["steps"],
      total: group?.length ?? 1,
      isOpen: opened,
      hasUndo: step.undo !== null,
      after: after.toSorted(ascending),
    });
  });
  return cards;
}

function ascending(one: number, other: number): number {
  return one - other;
}
