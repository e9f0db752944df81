import { expect, it } from "vitest";

import { fromInput, toInput } from "@/lib/moment-input";

const AT = Date.parse("2026-03-29T00:30:15Z");

it.each(["utc", "local"] as const)("comes back as it was given, in %s time", (zone) => {
  expect(fromInput(toInput(AT, zone), zone)).toBe(AT);
});

it("is nothing where it is no moment", () => {
  expect(fromInput("", "utc")).toBeNull();
  expect(fromInput("tomorrow", "local")).toBeNull();
});
