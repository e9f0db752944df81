import { useMemo } from "react";

import { Heatmap, type HeatmapRow } from "@/components/charts/heatmap";
import { formatCount, formatPercent } from "@/lib/format-number";
import { sumByWeekday, HOURS_OF_DAY, formatHourRange, WEEKDAYS, type HourCounts } from "@/lib/heatmap-hours";
import { useTimeZone } from "@/lib/time-zone-setting";

interface HoursOfWeekHeatmapProps {
  hours: readonly (HourCounts & { readonly at: string })[];
  of: keyof HourCounts;
}

const COLUMNS = HOURS_OF_DAY.map((hour) => String(hour).padStart(2, "0"));

/** Completed or failed jobs by weekday and hour. */
export function HoursOfWeekHeatmap({ hours, of }: HoursOfWeekHeatmapProps) {
  const zone = useTimeZone();
  const lines = useMemo<HeatmapRow[]>(
    () =>
      sumByWeekday(hours, zone).map((day, weekday) => ({
        name: WEEKDAYS[weekday] as string,
        cells: day.map((done, hour) => ({
          value: done[of],
          description: `${WEEKDAYS[weekday] as string} ${formatHourRange(hour)}: ${describeHour(done)}`,
        })),
      })),
    [hours, zone, of],
  );
  const clock = zone === "utc" ? "UTC" : "local time";
  const what = of === "completed" ? "Completed jobs" : "Failed attempts";
  return (
    <Heatmap label={`${what} by weekday and hour, ${clock}`} tone={of} columns={COLUMNS} rows={lines} note={clock} />
  );
}

function describeHour({ completed, failed }: HourCounts): string {
  const share = failed > 0 ? ` (${formatPercent(failed / (completed + failed))})` : "";
  return `${formatCount(completed)} completed, ${formatCount(failed)} failed${share}`;
}
