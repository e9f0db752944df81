import { expect, test } from "vitest";

import { estimatedTimeLeft } from "@/lib/estimated-time-left";

const at = "2026-01-01T00:00:00.000Z";
const now = new Date(at).getTime();

test("time left counts down from the last report", () => {
  expect(estimatedTimeLeft({ seconds_left: 10, at }, now + 4000)).toBe(6000);
});

test("an attempt that is late, or has no rate, shows no time left", () => {
  expect(estimatedTimeLeft({ seconds_left: 10, at }, now + 10_001)).toBeNull();
  expect(estimatedTimeLeft({ seconds_left: null, at }, now)).toBeNull();
});
