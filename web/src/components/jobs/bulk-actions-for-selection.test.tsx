import { expect, it } from "vitest";

import { actionTarget, allowedActions } from "@/components/jobs/bulk-actions-for-selection";
import { runKey } from "@/lib/run-key";
import { aJob } from "@/test/factories";

const WAITING = aJob.pending({ jobId: "mail:a" });
const DEAD = aJob.failed({ jobId: "mail:b" });
const ROWS = [WAITING, DEAD];

const selected = (...jobs: (typeof WAITING)[]) => ({ keys: new Set(jobs.map(runKey)), isAll: false });
const ALL = { keys: new Set<string>(), isAll: true };

it("allows what at least one of the selected jobs allows", () => {
  expect(allowedActions(selected(WAITING), ROWS, {})).toEqual(["cancel", "update", "delete"]);
  expect(allowedActions(selected(DEAD), ROWS, {})).toEqual(["redrive", "delete"]);
  expect(allowedActions(selected(WAITING, DEAD), ROWS, {})).toEqual(["cancel", "redrive", "update", "delete"]);
  expect(allowedActions(selected(), ROWS, {})).toEqual([]);
});

it("goes by the filter where all matching jobs are selected", () => {
  expect(allowedActions(ALL, [], { state: "FAILED" })).toEqual(["redrive", "delete"]);
  expect(actionTarget("redrive", ALL, [], { state: "FAILED" })).toMatchObject({ kind: "matching" });
});

it("leaves out the selected jobs that do not allow the action", () => {
  expect(actionTarget("redrive", selected(WAITING, DEAD), ROWS, {})).toEqual({ kind: "selected", ids: [runKey(DEAD)] });
});
