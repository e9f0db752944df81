import { useMemo } from "react";

import type { MetricsHistory } from "@/api/metrics-history";
import { LazyTimeSeriesChart } from "@/components/charts/lazy-time-series-chart";
import type { Series } from "@/components/charts/time-series-chart";
import { formatShort } from "@/lib/format-number";
import { formatDuration } from "@/lib/format-time";

type Percentiles = MetricsHistory["total"]["wait"];

function perMinute(value: number): string {
  return `${value < 10 ? Math.round(value * 10) / 10 : formatShort(Math.round(value))}/min`;
}

function useTimes(history: MetricsHistory): number[] {
  return useMemo(() => history.points.map((point) => Date.parse(point.at)), [history]);
}

/** Completed jobs and failed attempts per minute. */
export function ThroughputChart({ history, label }: { history: MetricsHistory; label: string }) {
  const times = useTimes(history);
  const series = useMemo<Series[]>(() => {
    const minutes = history.step_ms / 60_000;
    return [
      {
        label: "completed",
        color: "--completed",
        isFilled: true,
        values: history.points.map((point) => point.completed / minutes),
      },
      {
        label: "failed attempts",
        color: "--failed",
        dash: [4, 3],
        values: history.points.map((point) => point.failed / minutes),
      },
    ];
  }, [history]);
  return <LazyTimeSeriesChart label={label} times={times} series={series} format={perMinute} />;
}

/** Percentiles of the waiting or running time. */
export function LatencyChart({ history, of, label }: { history: MetricsHistory; of: "wait" | "run"; label: string }) {
  const times = useTimes(history);
  const series = useMemo<Series[]>(() => {
    const line = (name: keyof Percentiles) => history.points.map((point) => point[of][name]);
    return [
      { label: "p50", color: "--completed", values: line("p50_ms") },
      { label: "p95", color: "--pending", dash: [6, 3], values: line("p95_ms") },
      { label: "p99", color: "--scheduled", dash: [2, 3], values: line("p99_ms") },
    ];
  }, [history, of]);
  return <LazyTimeSeriesChart label={label} times={times} series={series} format={formatDuration} />;
}
