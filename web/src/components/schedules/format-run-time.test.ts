import { expect, test } from "vitest";

import { formatRunTime, ruleTimeZone } from "@/components/schedules/format-run-time";

test("in its own zone a run shows the local time there", () => {
  expect(formatRunTime("2026-11-17T02:30:00-05:00", "own")).toBe("2026-11-17 02:30:00 -05:00");
  expect(formatRunTime("2026-11-17T02:30:00+00:00", "own")).toBe("2026-11-17 02:30:00 UTC");
});

test("in UTC the same moment is shown", () => {
  expect(formatRunTime("2026-11-17T02:30:00-05:00", "utc")).toBe("2026-11-17 07:30:00 UTC");
});

test("a rule without a zone goes by UTC", () => {
  expect(ruleTimeZone({ type: "every", interval: 10 })).toBe("UTC");
  expect(ruleTimeZone({ tz: "Europe/Oslo" })).toBe("Europe/Oslo");
});
