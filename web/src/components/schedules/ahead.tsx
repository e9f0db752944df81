import { useMemo } from "react";

import type { Ahead } from "@/api/schedules";
import { Heatmap, type HeatCell, type HeatLine } from "@/components/charts/heatmap";
import { CLOCK, HOUR_MS, hourOf } from "@/lib/hours";
import { count, plural } from "@/lib/numbers";
import { clock, weekdayAndDay, type Zone } from "@/lib/time";

const COLUMNS = CLOCK.map((hour) => String(hour).padStart(2, "0"));

/** How much comes in each hour of the next days. */
export function AheadMap({ ahead, zone }: { ahead: Ahead; zone: Zone }) {
  const lines = useMemo(() => linesOf(ahead.hours, zone), [ahead, zone]);
  if (jobsIn(ahead.hours) === 0) return <p className="text-center text-muted">Nothing comes in the next 7 days.</p>;
  const whose = zone === "utc" ? "UTC" : "local time";
  return (
    <>
      <Heatmap
        label={`Jobs ahead by day and hour, ${whose}`}
        tone="scheduled"
        columns={COLUMNS}
        lines={lines}
        note={whose}
      />
      {ahead.uncounted > 0 && (
        <p className="mt-2 text-xs text-muted">
          Runs of {plural(ahead.uncounted, "more schedule")} are not in it: it counts those of the first thousand.
        </p>
      )}
    </>
  );
}

/** How much there is of it: in a day, in a week. */
export function aheadWords({ hours }: Ahead): string {
  return `${plural(jobsIn(hours.slice(0, 24)), "job")} in 24 hours, ${count(jobsIn(hours))} in 7 days`;
}

function jobsIn(hours: Ahead["hours"]): number {
  return hours.reduce((sum, { runs, due }) => sum + runs + due, 0);
}

interface Load {
  readonly at: number;
  readonly runs: number;
  readonly due: number;
}

/** A line for each day on the reader's clock. An hour that the clock shows twice is one place. */
export function linesOf(hours: Ahead["hours"], zone: Zone): HeatLine[] {
  const days = new Map<string, (Load | null)[]>();
  for (const { at, runs, due } of hours) {
    const ms = Date.parse(at);
    const name = weekdayAndDay(ms, zone);
    const day = days.get(name) ?? CLOCK.map(() => null);
    days.set(name, day);
    const hour = hourOf(ms, zone);
    const before = day[hour] ?? { at: ms, runs: 0, due: 0 };
    day[hour] = { at: before.at, runs: before.runs + runs, due: before.due + due };
  }
  return [...days].map(([name, day]) => ({ name, cells: day.map((load) => load && cellOf(name, load, zone)) }));
}

function cellOf(day: string, { at, runs, due }: Load, zone: Zone): HeatCell {
  const hour = `${clock(at, zone, false)}–${clock(at + HOUR_MS, zone, false)}`;
  return {
    value: runs + due,
    told: `${day} ${hour}: ${plural(runs, "run")} of schedules, ${plural(due, "scheduled job")}`,
  };
}
