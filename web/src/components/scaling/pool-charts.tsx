import { useMemo } from "react";

import type { PoolHistory } from "@/api/scaling";
import { LazyTimeSeriesChart } from "@/components/charts/lazy-time-series-chart";
import type { Series } from "@/components/charts/chart-types";
import { formatCount, formatShort } from "@/lib/format-number";
import { formatDuration } from "@/lib/format-time";

type Step = PoolHistory["points"][number];

function useTimes(history: PoolHistory): number[] {
  return useMemo(() => history.points.map((step) => Date.parse(step.at)), [history]);
}

function valuesOf(history: PoolHistory, read: (step: Step) => number | null): (number | null)[] {
  return history.points.map(read);
}

/** There is no half worker: ticks between whole numbers have no label. */
function formatWorkers(value: number): string {
  return Number.isInteger(value) ? formatCount(value) : "";
}

/** Workers wanted, running, booting and draining. */
export function WorkersChart({ history, label }: { history: PoolHistory; label: string }) {
  const times = useTimes(history);
  const series = useMemo<Series[]>(() => {
    const stepped = { isStepped: true };
    return [
      {
        ...stepped,
        label: "running",
        color: "--completed",
        isFilled: true,
        values: valuesOf(history, ({ running }) => running),
      },
      {
        ...stepped,
        label: "wanted",
        color: "--processing",
        dash: [6, 3],
        values: valuesOf(history, ({ wanted }) => wanted),
      },
      {
        ...stepped,
        label: "booting",
        color: "--scheduled",
        dash: [2, 3],
        values: valuesOf(history, ({ booting }) => booting),
      },
      {
        ...stepped,
        label: "draining",
        color: "--blocked",
        dash: [8, 3, 2, 3],
        values: valuesOf(history, ({ draining }) => draining),
      },
    ];
  }, [history]);
  return <LazyTimeSeriesChart label={label} times={times} series={series} format={formatWorkers} height={200} />;
}

/** Pending jobs. */
export function BacklogChart({ history, label }: { history: PoolHistory; label: string }) {
  const times = useTimes(history);
  const series = useMemo<Series[]>(
    () => [
      { label: "pending", color: "--pending", isFilled: true, values: valuesOf(history, ({ backlog }) => backlog) },
    ],
    [history],
  );
  return <LazyTimeSeriesChart label={label} times={times} series={series} format={formatShort} />;
}

interface WaitChartProps {
  history: PoolHistory;
  /** Null for a policy without one. */
  targetWaitMs: number | null;
  label: string;
}

/** For how long the next job to start has been due, next to the target. */
export function WaitChart({ history, targetWaitMs, label }: WaitChartProps) {
  const times = useTimes(history);
  const series = useMemo<Series[]>(() => {
    // Without a job that waits, the wait is 0, as long as an autoscaler was at work.
    const wait = valuesOf(history, (step) => (step.wanted === null ? null : (step.oldest_wait_ms ?? 0)));
    const lines: Series[] = [{ label: "oldest wait", color: "--pending", isFilled: true, values: wait }];
    if (targetWaitMs === null) return lines;
    return [
      ...lines,
      { label: "target", color: "--failed", dash: [4, 4], values: history.points.map(() => targetWaitMs) },
    ];
  }, [history, targetWaitMs]);
  return <LazyTimeSeriesChart label={label} times={times} series={series} format={formatDuration} />;
}
