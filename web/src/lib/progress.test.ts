import { expect, test } from "vitest";

import { timeLeft } from "@/lib/progress";

const at = "2026-01-01T00:00:00.000Z";
const now = new Date(at).getTime();

test("time left runs down from what was told", () => {
  expect(timeLeft({ seconds_left: 10, at }, now + 4000)).toBe(6000);
});

test("an attempt that is late, or told no pace, promises nothing", () => {
  expect(timeLeft({ seconds_left: 10, at }, now + 10_001)).toBeNull();
  expect(timeLeft({ seconds_left: null, at }, now)).toBeNull();
});
