/** Formats the run times of a schedule in the selected time zone. */

import { formatExact } from "@/lib/format-time";

export type RunTimeZone = "own" | "local" | "utc";

/** The server sends times with the offset of the schedule's own zone. */
export function formatRunTime(at: string, zone: RunTimeZone): string {
  if (zone !== "own") return formatExact(at, zone).replace(/\.\d+/, "");
  const found = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?(Z|[+-]\d\d:\d\d)$/.exec(at);
  if (found === null) return at;
  const [, date = "", time = "", offset = ""] = found;
  return `${date} ${time} ${offset === "Z" || offset === "+00:00" ? "UTC" : offset}`;
}

/** The time zone of a rule. */
export function ruleTimeZone(rule: Readonly<Record<string, unknown>>): string {
  return typeof rule.tz === "string" ? rule.tz : "UTC";
}
