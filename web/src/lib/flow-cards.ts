/** What the graph of a workflow shows: a card for each step, one for many that are alike, and none for what is hidden. */

import type { WorkflowStep } from "@/api/workflows";

/** More like steps than this stand on one card. */
const FOLDED_ABOVE = 6;

type Step = Pick<WorkflowStep, "type" | "queue" | "jobId" | "after" | "outcome"> & {
  /** Null for one that cannot be undone. */
  readonly undo: object | null;
};

/** Steps that only their name tells apart: by place, the first one first. Its first place names a group. */
export type Group = readonly [number, ...number[]];

export interface Card {
  /** Stays the same while a group is opened and closed, and others are hidden. */
  readonly key: string;
  /** The group that it stands for; null for a step by itself. */
  readonly group: number | null;
  /** Steps that are seen on it, by place: one, all of a closed group, or those of an open one that are not hidden. */
  readonly steps: readonly [number, ...number[]];
  /** How many steps it stands for, those of an open group that are hidden included. */
  readonly total: number;
  readonly isOpen: boolean;
  readonly hasUndo: boolean;
  /** Cards that it comes after, by place. */
  readonly after: readonly number[];
}

export interface CardsView {
  readonly isDoneHidden: boolean;
  /** Groups that are open. */
  readonly open: "all" | ReadonlySet<number>;
}

export function isDone({ outcome }: Pick<WorkflowStep, "outcome">): boolean {
  return outcome === "completed";
}

export function isOpen({ open }: Pick<CardsView, "open">, group: number): boolean {
  return open === "all" || open.has(group);
}

/** Steps of one task that come after the same steps, and before the same ones. */
export function groupsOf(steps: readonly Step[]): readonly Group[] {
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
  return [...alike.values()].filter((group) => group.length > FOLDED_ABOVE);
}

/**
 * The cards, those before that others come after. A step comes after steps before it only, and those of a group come
 * after the same ones: so cards never come after each other in a circle.
 */
export function cardsOf(steps: readonly Step[], groups: readonly Group[], view: CardsView): readonly Card[] {
  const groupAt = new Map(groups.flatMap((group) => group.map((place) => [place, group] as const)));
  const isHidden = (place: number) => view.isDoneHidden && isDone(steps[place] as Step);
  const cards: Card[] = [];
  const cardAt = new Map<number, number>();
  // The cards that a step stands for as something to come after: its own or, where it is hidden, those before it.
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
