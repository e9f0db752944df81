import { expect, it } from "vitest";

import { fromInputValue, toInputValue } from "@/lib/datetime-input-value";

const AT = Date.parse("2026-03-29T00:30:15Z");

it.each(["utc", "local"] as const)("comes back as it was given, in %s time", (zone) => {
  expect(fromInputValue(toInputValue(AT, zone), zone)).toBe(AT);
});

it("is nothing where it is no moment", () => {
  expect(fromInputValue("", "utc")).toBeNull();
  expect(fromInputValue("tomorrow", "local")).toBeNull();
});
