/** When a schedule's jobs come, told in a zone that the reader chose. */

import { exact } from "@/lib/time";

export type TimesIn = "own" | "local" | "utc";

/** The server tells moments with the offset of the schedule's own zone: that is the clock on its wall. */
export function told(at: string, zone: TimesIn): string {
  if (zone !== "own") return exact(at, zone).replace(/\.\d+/, "");
  const found = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?(Z|[+-]\d\d:\d\d)$/.exec(at);
  if (found === null) return at;
  const [, date = "", time = "", offset = ""] = found;
  return `${date} ${time} ${offset === "Z" || offset === "+00:00" ? "UTC" : offset}`;
}

/** The zone of a rule. */
export function zoneOf(rule: Readonly<Record<string, unknown>>): string {
  return typeof rule.tz === "string" ? rule.tz : "UTC";
}
