/** The period that charts show: one of three ranges that end now, or a range that was chosen in a chart. */

import { formatClock, formatDay, type TimeZone } from "@/lib/format-time";
import { oneOfParam, textParam } from "@/lib/parse-search-params";

/** How far back, the step width, and the refresh interval. */
export const RANGES = {
  hour: { label: "Hour", words: "the last hour", sinceS: 3600, stepS: 60, everyMs: 5000 },
  day: { label: "Day", words: "the last day", sinceS: 86_400, stepS: 900, everyMs: 30_000 },
  month: { label: "Month", words: "the last 30 days", sinceS: 30 * 86_400, stepS: 6 * 3600, everyMs: 300_000 },
} as const;

export type Range = keyof typeof RANGES;

/** An earlier period to compare with, by the shift in ms. */
export const COMPARISONS = {
  day: { label: "previous day", shiftMs: 86_400_000 },
  week: { label: "previous week", shiftMs: 7 * 86_400_000 },
} as const;

export type Comparison = keyof typeof COMPARISONS;

/** The search params of charts. */
export interface ChartSearch {
  /** One hour by default. */
  readonly range?: Exclude<Range, "hour">;
  /** A chosen range, as ISO times; it replaces `range`. */
  readonly from?: string;
  readonly until?: string;
  readonly compare?: Comparison;
}

export function readChartSearch(search: Record<string, unknown>): ChartSearch {
  const [from, until] = [timeParam(search.from), timeParam(search.until)];
  const isChosen = from !== undefined && until !== undefined && Date.parse(from) < Date.parse(until);
  return {
    range: oneOfParam(search.range, ["day", "month"]),
    from: isChosen ? from : undefined,
    until: isChosen ? until : undefined,
    compare: oneOfParam(search.compare, ["day", "week"]),
  };
}

function timeParam(value: unknown): string | undefined {
  const text = textParam(value, 40);
  return text !== undefined && /^\d{4}-\d{2}-\d{2}T/.test(text) && !Number.isNaN(Date.parse(text)) ? text : undefined;
}

export interface ChartPeriod {
  readonly sinceS: number;
  readonly stepS: number;
  /** The end, if it is not now. */
  readonly until: string | undefined;
  /** The refresh interval; a period that has ended does not change. */
  readonly everyMs: number | false;
  readonly words: string;
}

const MINUTE_S = 60;
const HOUR_S = 3600;
const DAY_S = 86_400;
/** Widths of a step, and the longest period that is drawn with it. */
const STEPS = [
  [MINUTE_S, 3 * HOUR_S],
  [5 * MINUTE_S, 12 * HOUR_S],
  [15 * MINUTE_S, 2 * DAY_S],
  [HOUR_S, 8 * DAY_S],
] as const;

/** `now` in ms: minutes are stored for 24 hours, older periods have whole hours. */
export function chartPeriod(search: ChartSearch, now: number, zone: TimeZone): ChartPeriod {
  const { from, until } = search;
  if (from === undefined || until === undefined) return { ...RANGES[search.range ?? "hour"], until: undefined };
  const sinceS = Math.max(MINUTE_S, Math.round((Date.parse(until) - Date.parse(from)) / 1000));
  const least = now - Date.parse(from) > DAY_S * 1000 ? HOUR_S : MINUTE_S;
  const [fitting = 6 * HOUR_S] = STEPS.find(([, longest]) => sinceS <= longest) ?? [];
  return {
    sinceS: Math.max(sinceS, least),
    stepS: Math.max(fitting, least),
    until,
    everyMs: Date.parse(until) > now ? RANGES.hour.everyMs : false,
    words: formatSpan({ from: Date.parse(from), until: Date.parse(until) }, zone),
  };
}

/** "18 Nov 03:00 to 04:15", or with both days. */
export function formatSpan({ from, until }: { from: number; until: number }, zone: TimeZone): string {
  const [day, lastDay] = [formatDay(from, zone), formatDay(until, zone)];
  const [start, end] = [formatClock(from, zone, false), formatClock(until, zone, false)];
  return day === lastDay ? `${day} ${start} to ${end}` : `${day} ${start} to ${lastDay} ${end}`;
}
