/** One unit for all durations of a column or an axis, so that they can be compared at a glance. */

export interface DurationUnit {
  readonly name: string;
  readonly ms: number;
}

const UNITS: readonly DurationUnit[] = [
  { name: "ms", ms: 1 },
  { name: "s", ms: 1000 },
  { name: "min", ms: 60_000 },
  { name: "h", ms: 3_600_000 },
  { name: "d", ms: 86_400_000 },
];
const MILLISECONDS = UNITS[0] as DurationUnit;

/** The largest unit in which the longest duration is at least 1; minutes and more from 2 on, since "1.1 min" hides seconds. */
export function durationUnit(durations: readonly (number | null | undefined)[]): DurationUnit {
  const longest = Math.max(0, ...durations.map((ms) => ms ?? 0));
  return UNITS.findLast(({ ms }) => longest >= (ms > 1000 ? 2 * ms : ms)) ?? MILLISECONDS;
}

/** "0.12 s", "3.5 s", "240 s": three significant digits at most. */
export function formatInUnit(ms: number, unit: DurationUnit): string {
  const value = ms / unit.ms;
  const digits = value >= 99.95 || unit.ms === 1 ? 0 : value >= 9.995 ? 1 : 2;
  const text = value.toFixed(digits);
  return `${text.includes(".") ? text.replace(/\.?0+$/, "") : text} ${unit.name}`;
}

/** The ticks of an axis in one unit. */
export function formatDurations(durations: readonly number[]): string[] {
  const unit = durationUnit(durations);
  return durations.map((ms) => formatInUnit(ms, unit));
}
