import { expect, it } from "vitest";

import { countByState, mostSevereState, isRunning } from "@/lib/workflow-step-state";

const processing = { outcome: "waiting", status: "PROCESSING", items: null } as const;
const failed = { outcome: "failed", status: "FAILED", items: null } as const;
const completed = { outcome: "completed", status: "COMPLETED", items: null } as const;

it("counts steps by their state, the gravest first", () => {
  const steps = [completed, processing, completed, failed];
  expect(countByState(steps)).toEqual([
    ["FAILED", 1],
    ["PROCESSING", 1],
    ["COMPLETED", 2],
  ]);
  expect(mostSevereState(steps)).toBe("FAILED");
  expect(mostSevereState([completed])).toBe("COMPLETED");
});

it("runs while the step does, or what undoes it", () => {
  expect(isRunning({ ...processing, undo: null })).toBe(true);
  expect(isRunning({ ...completed, undo: { status: "PROCESSING" } })).toBe(true);
  expect(isRunning({ ...completed, undo: { status: "PENDING" } })).toBe(false);
});
