import { useMemo } from "react";

import type { Forecast } from "@/api/schedules";
import { Heatmap, type HeatmapCell, type HeatmapRow } from "@/components/charts/heatmap";
import { formatCount, formatPlural } from "@/lib/format-number";
import { formatClock, formatWeekday, type TimeZone } from "@/lib/format-time";
import { HOURS_OF_DAY, HOUR_MS, hourOf } from "@/lib/heatmap-hours";

const COLUMNS = HOURS_OF_DAY.map((hour) => String(hour).padStart(2, "0"));

/** Expected jobs in each hour of the next days. */
export function ForecastHeatmap({ forecast, zone }: { forecast: Forecast; zone: TimeZone }) {
  const lines = useMemo(() => toHeatmapRows(forecast.hours, zone), [forecast, zone]);
  if (totalJobs(forecast.hours) === 0) return <p className="text-center text-muted">No jobs in the next 7 days.</p>;
  const whose = zone === "utc" ? "UTC" : "local time";
  return (
    <>
      <Heatmap
        label={`Upcoming jobs by day and hour, ${whose}`}
        tone="scheduled"
        columns={COLUMNS}
        rows={lines}
        note={whose}
      />
      {forecast.uncounted > 0 && (
        <p className="mt-2 text-xs text-muted">
          Does not include {formatPlural(forecast.uncounted, "more schedule")}: only the first thousand are counted.
        </p>
      )}
    </>
  );
}

/** The totals of the next day and the next week. */
export function forecastSummary({ hours }: Forecast): string {
  return `${formatPlural(totalJobs(hours.slice(0, 24)), "job")} in 24 hours, ${formatCount(totalJobs(hours))} in 7 days`;
}

function totalJobs(hours: Forecast["hours"]): number {
  return hours.reduce((sum, { runs, due }) => sum + runs + due, 0);
}

interface HourLoad {
  readonly at: number;
  readonly runs: number;
  readonly due: number;
}

/** One row per day in the selected time zone. An hour that occurs twice (end of daylight saving time) is one cell. */
export function toHeatmapRows(hours: Forecast["hours"], zone: TimeZone): HeatmapRow[] {
  const days = new Map<string, (HourLoad | null)[]>();
  for (const { at, runs, due } of hours) {
    const ms = Date.parse(at);
    const name = formatWeekday(ms, zone);
    const day = days.get(name) ?? HOURS_OF_DAY.map(() => null);
    days.set(name, day);
    const hour = hourOf(ms, zone);
    const before = day[hour] ?? { at: ms, runs: 0, due: 0 };
    day[hour] = { at: before.at, runs: before.runs + runs, due: before.due + due };
  }
  return [...days].map(([name, day]) => ({ name, cells: day.map((load) => load && toCell(name, load, zone)) }));
}

function toCell(day: string, { at, runs, due }: HourLoad, zone: TimeZone): HeatmapCell {
  const hour = `${formatClock(at, zone, false)}–${formatClock(at + HOUR_MS, zone, false)}`;
  return {
    value: runs + due,
    description: `${day} ${hour}: ${formatPlural(runs, "run")} of schedules, ${formatPlural(due, "scheduled job")}`,
  };
}
