import { useMemo } from "react";

import { Heatmap, type HeatLine } from "@/components/charts/heatmap";
import { byWeekday, CLOCK, hourWords, WEEKDAYS, type Done } from "@/lib/hours";
import { count, percent } from "@/lib/numbers";
import { useZone } from "@/lib/zone";

interface WeekHoursProps {
  hours: readonly (Done & { readonly at: string })[];
  of: keyof Done;
}

const COLUMNS = CLOCK.map((hour) => String(hour).padStart(2, "0"));

/** When jobs run, and when they fail. */
export function WeekHours({ hours, of }: WeekHoursProps) {
  const zone = useZone();
  const lines = useMemo<HeatLine[]>(
    () =>
      byWeekday(hours, zone).map((day, weekday) => ({
        name: WEEKDAYS[weekday] as string,
        cells: day.map((done, hour) => ({
          value: done[of],
          told: `${WEEKDAYS[weekday] as string} ${hourWords(hour)}: ${figures(done)}`,
        })),
      })),
    [hours, zone, of],
  );
  const clock = zone === "utc" ? "UTC" : "local time";
  const what = of === "completed" ? "Completed jobs" : "Failed attempts";
  return (
    <Heatmap label={`${what} by weekday and hour, ${clock}`} tone={of} columns={COLUMNS} lines={lines} note={clock} />
  );
}

function figures({ completed, failed }: Done): string {
  const share = failed > 0 ? ` (${percent(failed / (completed + failed))})` : "";
  return `${count(completed)} completed, ${count(failed)} failed${share}`;
}
