/** Hours on the reader's clock: of the week, for how it went; of the days to come, for what is ahead. */

import type { Zone } from "@/lib/time";

export const HOUR_MS = 3_600_000;
/** As many of each weekday, so that they can be compared. */
export const WEEKS = 4;
export const WEEKDAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"] as const;
/** 0 to 23. */
export const CLOCK: readonly number[] = Array.from({ length: 24 }, (_, hour) => hour);

/** The hour of the day; where the zone is half an hour off, the one in which it begins. */
export function hourOf(at: number, zone: Zone): number {
  const date = new Date(at);
  return zone === "utc" ? date.getUTCHours() : date.getHours();
}

/** Monday is 0. */
export function weekdayOf(at: number, zone: Zone): number {
  const date = new Date(at);
  return ((zone === "utc" ? date.getUTCDay() : date.getDay()) + 6) % 7;
}

/** "14:00–15:00". */
export function hourWords(hour: number): string {
  const told = (one: number) => `${String(one).padStart(2, "0")}:00`;
  return `${told(hour)}–${told((hour + 1) % 24)}`;
}

export interface Done {
  readonly completed: number;
  readonly failed: number;
}

/** What each hour of each weekday brought, over the last weeks together: seven days of 24 hours. */
export function byWeekday(hours: readonly (Done & { readonly at: string })[], zone: Zone): Done[][] {
  const week: Done[][] = WEEKDAYS.map(() => CLOCK.map(() => ({ completed: 0, failed: 0 })));
  // The present hour has only begun: the one that began as many weeks ago belongs to its place as well, and is left out.
  for (const { at, completed, failed } of hours.slice(-WEEKS * 7 * 24)) {
    const ms = Date.parse(at);
    const day = week[weekdayOf(ms, zone)] as Done[];
    const hour = hourOf(ms, zone);
    const before = day[hour] as Done;
    day[hour] = { completed: before.completed + completed, failed: before.failed + failed };
  }
  return week;
}
