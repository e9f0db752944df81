/** Converts times to and from the value of `<input type="datetime-local">`, in the selected time zone. */

import type { TimeZone } from "@/lib/format-time";

const MINUTE_MS = 60_000;

/** "2026-01-31T23:59:00". */
export function toInputValue(at: number, zone: TimeZone): string {
  const shift = zone === "utc" ? 0 : new Date(at).getTimezoneOffset() * MINUTE_MS;
  return new Date(at - shift).toISOString().slice(0, 19);
}

/** Null if it is not a time. */
export function fromInputValue(text: string, zone: TimeZone): number | null {
  const at = new Date(zone === "utc" ? `${text}Z` : text).getTime();
  return text === "" || Number.isNaN(at) ? null : at;
}
