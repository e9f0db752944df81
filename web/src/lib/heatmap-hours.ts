/** Hours and weekdays in the selected time zone, for the heatmaps. */

import type { TimeZone } from "@/lib/format-time";

export const HOUR_MS = 3_600_000;
/** Whole weeks, so that weekdays can be compared. */
export const WEEKS = 4;
export const WEEKDAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"] as const;
/** 0 to 23. */
export const HOURS_OF_DAY: readonly number[] = Array.from({ length: 24 }, (_, hour) => hour);

/** The hour of the day; in zones with a half-hour offset, the hour in which it starts. */
export function hourOf(at: number, zone: TimeZone): number {
  const date = new Date(at);
  return zone === "utc" ? date.getUTCHours() : date.getHours();
}

/** Monday is 0. */
export function weekdayOf(at: number, zone: TimeZone): number {
  const date = new Date(at);
  return ((zone === "utc" ? date.getUTCDay() : date.getDay()) + 6) % 7;
}

/** "14:00–15:00". */
export function formatHourRange(hour: number): string {
  const formatHour = (one: number) => `${String(one).padStart(2, "0")}:00`;
  return `${formatHour(hour)}–${formatHour((hour + 1) % 24)}`;
}

export interface HourCounts {
  readonly completed: number;
  readonly failed: number;
}

/** Sums the counts by weekday and hour over the last weeks: seven days of 24 hours. */
export function sumByWeekday(hours: readonly (HourCounts & { readonly at: string })[], zone: TimeZone): HourCounts[][] {
  const week: HourCounts[][] = WEEKDAYS.map(() => HOURS_OF_DAY.map(() => ({ completed: 0, failed: 0 })));
  // The current hour is incomplete and shares its cell with the oldest one, which is left out.
  for (const { at, completed, failed } of hours.slice(-WEEKS * 7 * 24)) {
    const ms = Date.parse(at);
    const day = week[weekdayOf(ms, zone)] as HourCounts[];
    const hour = hourOf(ms, zone);
    const before = day[hour] as HourCounts;
    day[hour] = { completed: before.completed + completed, failed: before.failed + failed };
  }
  return week;
}
