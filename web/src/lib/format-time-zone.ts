/** The name of the time zone in which times are shown. */

import type { TimeZone } from "@/lib/format-time";

/** "UTC", or the offset of the local zone at that time: "UTC+01:00". */
export function formatTimeZone(zone: TimeZone, at: number): string {
  if (zone === "utc") return "UTC";
  const minutes = -new Date(at).getTimezoneOffset();
  if (minutes === 0) return "UTC";
  const part = (value: number) => String(Math.floor(value)).padStart(2, "0");
  const size = Math.abs(minutes);
  return `UTC${minutes < 0 ? "−" : "+"}${part(size / 60)}:${part(size % 60)}`;
}
