import { expect, it } from "vitest";

import { readWorkflowsSearch, statesOf } from "@/routes/workflows.search-params";

it("keeps states that exist, and drops nonsense", () => {
  expect(readWorkflowsSearch({ state: "PARKED,nonsense,failed", name: "order" })).toEqual({
    state: "FAILED,PARKED",
    name: "order",
  });
  expect(readWorkflowsSearch({ state: 7, name: "" })).toEqual({});
});

it("reads all states where none is named", () => {
  expect(statesOf({})).toEqual([]);
});
