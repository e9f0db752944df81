import { describe, expect, it } from "vitest";

import { buildCards, groupSteps, type CardOptions } from "@/lib/workflow-graph-cards";

type Step = Parameters<typeof groupSteps>[0][number];

function aStep(type: string, ...after: number[]): Step {
  return { type, queue: "pictures", jobId: `pictures:${type}`, after, outcome: "waiting", undo: null };
}

function done(step: Step): Step {
  return { ...step, outcome: "completed" };
}

const ALL: CardOptions = { isDoneHidden: false, open: new Set() };
const REST: CardOptions = { isDoneHidden: true, open: new Set() };

function fanOut(many: number): Step[] {
  const resizes = Array.from({ length: many }, () => aStep("resize", 0));
  return [aStep("fetch"), ...resizes, aStep("publish", ...resizes.map((_, at) => at + 1))];
}

function shown(steps: readonly Step[], view: CardOptions): unknown {
  return buildCards(steps, groupSteps(steps), view).map(({ key, steps: seen, after }) => [key, seen.length, after]);
}

describe("groupsOf", () => {
  it("puts many steps of one task between the same steps together", () => {
    expect(groupSteps(fanOut(7))).toEqual([[1, 2, 3, 4, 5, 6, 7]]);
  });

  it("leaves a few as they are", () => {
    expect(groupSteps(fanOut(6))).toEqual([]);
  });

  it("tells steps apart by task, by what they come after and by what comes after them", () => {
    const others: [number, Step][] = [
      [3, aStep("crop", 0)],
      [3, aStep("resize")],
      [3, { ...aStep("resize", 0), undo: {} }],
      [3, { ...aStep("resize", 0), jobId: null }],
    ];
    for (const [place, other] of others) expect(groupSteps(fanOut(7).with(place, other))).toEqual([]);
    expect(groupSteps([...fanOut(7), aStep("resize", 0)])).toEqual([[1, 2, 3, 4, 5, 6, 7]]);
  });
});

describe("cardsOf", () => {
  it("has one card for a group, which comes before and after what its steps do", () => {
    expect(shown(fanOut(40), ALL)).toEqual([
      ["0", 1, []],
      ["1", 40, [0]],
      ["41", 1, [1]],
    ]);
  });

  it("has the same card for a group that is open", () => {
    const steps = fanOut(7);
    const [, card] = buildCards(steps, groupSteps(steps), { ...ALL, open: new Set([1]) });
    expect(card).toMatchObject({ key: "1", group: 1, isOpen: true, steps: [1, 2, 3, 4, 5, 6, 7] });
    expect(buildCards(steps, groupSteps(steps), { ...ALL, open: "all" })[1]).toEqual(card);
  });

  it("leaves out what is done, and keeps the lines through it", () => {
    //  0 ── 1 ── 3        1 and 2 are done; 0 was redriven since, and runs again
    //  └─── 2 ───┘
    const steps = [aStep("a"), done(aStep("b", 0)), done(aStep("c", 0)), aStep("d", 1, 2)];
    expect(shown(steps, REST)).toEqual([
      ["0", 1, []],
      ["3", 1, [0]],
    ]);
  });

  it("shows a group until all of it is done: closed as a whole, open without what is done", () => {
    const [first, ...rest] = fanOut(7) as [Step, ...Step[]];
    const steps = [done(first), ...rest.map((step, at) => (at < 5 ? done(step) : step))];
    expect(shown(steps, REST)).toEqual([
      ["1", 7, []],
      ["8", 1, [0]],
    ]);
    expect(shown(steps, { ...REST, open: "all" })).toEqual([
      ["1", 2, []],
      ["8", 1, [0]],
    ]);
    expect(buildCards(steps, groupSteps(steps), { ...REST, open: "all" })[0]?.total).toBe(7);
    expect(shown(steps.map(done), REST)).toEqual([]);
  });
});
