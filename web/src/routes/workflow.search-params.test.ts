import { expect, it } from "vitest";

import { readWorkflowSearch } from "@/routes/workflow.search-params";

it("keeps what makes sense", () => {
  const search = { view: "timeline", hideDone: true, follow: true, open: [3, 17], critical: true };
  expect(readWorkflowSearch(search)).toEqual(search);
  expect(readWorkflowSearch({ open: "all" })).toEqual({ open: "all" });
});

it("drops nonsense", () => {
  const search = { view: "map", hideDone: "yes", follow: 1, open: ["3", -1, 2.5, null], critical: false };
  expect(readWorkflowSearch(search)).toEqual({});
  expect(readWorkflowSearch({ open: [3, 3, "4"] })).toEqual({ open: [3] });
});

it("keeps the groups opened last, where there are too many for an address", () => {
  const { open } = readWorkflowSearch({ open: Array.from({ length: 80 }, (_, at) => at) });
  expect(open).toHaveLength(50);
  expect(open?.at(-1)).toBe(79);
});
