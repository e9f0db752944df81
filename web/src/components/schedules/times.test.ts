import { expect, test } from "vitest";

import { told, zoneOf } from "@/components/schedules/times";

test("in its own zone a run is told by the clock on the wall there", () => {
  expect(told("2026-11-17T02:30:00-05:00", "own")).toBe("2026-11-17 02:30:00 -05:00");
  expect(told("2026-11-17T02:30:00+00:00", "own")).toBe("2026-11-17 02:30:00 UTC");
});

test("in UTC the same moment is told", () => {
  expect(told("2026-11-17T02:30:00-05:00", "utc")).toBe("2026-11-17 07:30:00 UTC");
});

test("a rule without a zone goes by UTC", () => {
  expect(zoneOf({ type: "every", interval: 10 })).toBe("UTC");
  expect(zoneOf({ tz: "Europe/Oslo" })).toBe("Europe/Oslo");
});
