import { expect, test } from "vitest";

import { groupScalingDecisions } from "@/lib/group-scaling-decisions";
import { aScalingDecision } from "@/test/factories";

function ids(...decisions: Parameters<typeof aScalingDecision>[0][]): string[][] {
  return groupScalingDecisions(decisions.map(aScalingDecision)).map((group) => group.map(({ id }) => id));
}

test("decisions that changed nothing and follow each other are one group", () => {
  expect(ids({ id: "4" }, { id: "3" }, { id: "2", launched: ["i-1"] }, { id: "1" })).toEqual([
    ["4", "3"],
    ["2"],
    ["1"],
  ]);
});

test("a decision that changed something is never part of a group", () => {
  expect(ids({ id: "3", drained: ["i-1"] }, { id: "2", drained: ["i-2"] }, { id: "1" })).toEqual([["3"], ["2"], ["1"]]);
});

test("a hold, a pause, a dry run or another number of workers begins a new group", () => {
  expect(
    ids(
      { id: "5" },
      { id: "4", is_hold: true },
      { id: "3", is_paused: true },
      { id: "2", is_dry_run: true },
      { id: "1", wanted: 9 },
    ),
  ).toEqual([["5"], ["4"], ["3"], ["2"], ["1"]]);
});
