/** Moments as `<input type="datetime-local">` writes them, in the zone that the reader chose. */

import type { Zone } from "@/lib/time";

const MINUTE_MS = 60_000;

/** "2026-01-31T23:59:00". */
export function toInput(at: number, zone: Zone): string {
  const shift = zone === "utc" ? 0 : new Date(at).getTimezoneOffset() * MINUTE_MS;
  return new Date(at - shift).toISOString().slice(0, 19);
}

/** Null where it is no moment. */
export function fromInput(text: string, zone: Zone): number | null {
  const at = new Date(zone === "utc" ? `${text}Z` : text).getTime();
  return text === "" || Number.isNaN(at) ? null : at;
}
