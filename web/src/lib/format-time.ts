/** Formats times and durations. All take milliseconds, or ISO times from the server. */

const UNITS: readonly [name: string, ms: number][] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1000],
];

/** A span in its two largest units: "2 h 5 min", "12.4 s", "850 ms". Never negative. */
export function formatDuration(ms: number): string {
  const span = Math.max(0, ms);
  if (span < 1000) return `${Math.round(span)} ms`;
  if (span < 60_000) return `${(Math.floor(span / 100) / 10).toString()} s`;
  const first = UNITS.findIndex(([, size]) => span >= size);
  const [name, size] = UNITS[first] as [string, number];
  const next = UNITS[first + 1];
  const rest = next ? Math.floor((span % size) / next[1]) : 0;
  return `${Math.floor(span / size)} ${name}${next && rest ? ` ${rest} ${next[0]}` : ""}`;
}

/** "in 5 s", "3 min ago", "now": only the largest unit. */
export function formatRelative(at: string | number, now: number): string {
  const distance = new Date(at).getTime() - now;
  const span = Math.abs(distance);
  if (span < 1000) return "now";
  const [name, size] = UNITS.find(([, ms]) => span >= ms) as [string, number];
  const text = `${Math.floor(span / size)} ${name}`;
  return distance > 0 ? `in ${text}` : `${text} ago`;
}

export type TimeZone = "local" | "utc";

const EXACT = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium" });

/** The exact time, to the millisecond, in the local zone or UTC. */
export function formatExact(at: string | number, zone: TimeZone = "local"): string {
  const date = new Date(at);
  if (zone === "utc") return `${date.toISOString().replace("T", " ").replace("Z", "")} UTC`;
  return `${EXACT.format(date)}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

/** The time of day, for axes and log lines. */
export function formatClock(at: string | number, zone: TimeZone = "local", withSeconds = true): string {
  return formatParts(at, zone, { hour: "2-digit", minute: "2-digit", ...(withSeconds ? { second: "2-digit" } : {}) });
}

/** The day, for axes over weeks. */
export function formatDay(at: string | number, zone: TimeZone = "local"): string {
  return formatParts(at, zone, { day: "numeric", month: "short" });
}

/** The day of this week or the next: "Thu 19". */
export function formatWeekday(at: string | number, zone: TimeZone = "local"): string {
  return formatParts(at, zone, { weekday: "short", day: "numeric" });
}

function formatParts(at: string | number, zone: TimeZone, parts: Intl.DateTimeFormatOptions): string {
  const place = zone === "utc" ? { timeZone: "UTC" } : {};
  return new Intl.DateTimeFormat("en-GB", { ...parts, ...place }).format(new Date(at));
}
