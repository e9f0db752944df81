import { expect, it } from "vitest";

import { sumByWeekday, hourOf, HOUR_MS, formatHourRange, WEEKS } from "@/lib/heatmap-hours";

/** A Tuesday. */
const NOON = Date.parse("2026-11-17T12:00:00Z");

function hour(at: number, completed: number, failed = 0) {
  return { at: new Date(at).toISOString(), completed, failed };
}

it("adds up the same hour of the same weekday", () => {
  const week = sumByWeekday([hour(NOON, 3, 1), hour(NOON + HOUR_MS, 5), hour(NOON + 7 * 24 * HOUR_MS, 4, 2)], "utc");

  expect(week[1]?.[12]).toEqual({ completed: 7, failed: 3 });
  expect(week[1]?.[13]).toEqual({ completed: 5, failed: 0 });
  expect(week.flat().reduce((sum, { completed }) => sum + completed, 0)).toBe(12);
});

it("counts as many of each hour of the week", () => {
  const months = Array.from({ length: 30 * 24 }, (_, back) => hour(NOON - back * HOUR_MS, 1)).reverse();

  expect(new Set(sumByWeekday(months, "utc").flatMap((day) => day.map(({ completed }) => completed)))).toEqual(
    new Set([WEEKS]),
  );
});

it("follows the reader's clock, or UTC", () => {
  const at = Date.parse("2026-11-17T23:30:00Z");

  expect(hourOf(at, "utc")).toBe(23);
  expect(hourOf(at, "local")).toBe(new Date(at).getHours());
});

it("says until when an hour lasts", () => {
  expect(formatHourRange(9)).toBe("09:00–10:00");
  expect(formatHourRange(23)).toBe("23:00–00:00");
});
