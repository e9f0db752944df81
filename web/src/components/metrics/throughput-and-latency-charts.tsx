import { useMemo } from "react";

import type { MetricsHistory } from "@/api/metrics-history";
import type { ChartMark, Series, TimeSpan } from "@/components/charts/chart-types";
import { LazyTimeSeriesChart } from "@/components/charts/lazy-time-series-chart";
import { alignPrevious } from "@/lib/chart-scale-gaps-and-comparison";
import { COMPARISONS, type Comparison } from "@/lib/chart-period";
import { formatDurations } from "@/lib/format-durations-in-one-unit";
import { formatShort } from "@/lib/format-number";
import { formatDuration } from "@/lib/format-time";

type Percentiles = MetricsHistory["total"]["wait"];
type Point = MetricsHistory["points"][number];

/** What all charts of a page share. */
export interface ChartContext {
  readonly history: MetricsHistory;
  readonly compare: Comparison | undefined;
  readonly marks: readonly ChartMark[];
  readonly picked: TimeSpan | null;
  readonly onPick: (span: TimeSpan) => void;
  readonly onZoom: (span: TimeSpan) => void;
}

function perMinute(value: number): string {
  return `${value < 10 ? Math.round(value * 10) / 10 : formatShort(Math.round(value))}/min`;
}

/** The points of the chart and, if compared, those of the earlier period at the same times of day. */
function useHistoryLines({ history, compare }: ChartContext) {
  return useMemo(() => {
    const times = history.points.map((point) => Date.parse(point.at));
    const { previous } = history;
    const earlier: (Point | null)[] | undefined =
      compare === undefined || !previous ? undefined : alignPrevious(times, COMPARISONS[compare].shiftMs, previous);
    return { times, earlier, earlierStepMs: previous?.step_ms ?? history.step_ms };
  }, [history, compare]);
}

function commonProps({ compare, marks, picked, onPick, onZoom }: ChartContext) {
  return {
    marks,
    picked,
    onPick,
    onZoom,
    previousLabel: compare === undefined ? undefined : COMPARISONS[compare].label,
  };
}

/** Enqueued and completed jobs, and failed attempts, per minute. */
export function ThroughputChart({ context, label }: { context: ChartContext; label: string }) {
  const { history } = context;
  const { times, earlier, earlierStepMs } = useHistoryLines(context);
  const series = useMemo<Series[]>(() => {
    const line = (name: "enqueued" | "completed" | "failed") => ({
      values: history.points.map((point) => point[name] / (history.step_ms / 60_000)),
      previous: earlier?.map((point) => (point === null ? null : point[name] / (earlierStepMs / 60_000))),
    });
    const { values: enqueued } = line("enqueued");
    return [
      { label: "completed", color: "--completed", isFilled: true, ...line("completed") },
      { label: "enqueued", color: "--pending", dash: [2, 3], values: enqueued },
      { label: "failed attempts", color: "--failed", dash: [4, 3], ...line("failed") },
    ];
  }, [history, earlier, earlierStepMs]);
  return (
    <LazyTimeSeriesChart label={label} times={times} series={series} format={perMinute} {...commonProps(context)} />
  );
}

/** Percentiles of the waiting or running time. */
export function LatencyChart({ context, of, label }: { context: ChartContext; of: "wait" | "run"; label: string }) {
  const { history } = context;
  const { times, earlier } = useHistoryLines(context);
  const series = useMemo<Series[]>(() => {
    const values = (name: keyof Percentiles) => history.points.map((point) => point[of][name]);
    const previous = (name: keyof Percentiles) => earlier?.map((point) => point?.[of][name] ?? null);
    return [
      { label: "p50", color: "--completed", values: values("p50_ms") },
      { label: "p95", color: "--pending", dash: [6, 3], values: values("p95_ms"), previous: previous("p95_ms") },
      { label: "p99", color: "--scheduled", dash: [2, 3], values: values("p99_ms") },
    ];
  }, [history, of, earlier]);
  return (
    <LazyTimeSeriesChart
      label={label}
      times={times}
      series={series}
      format={formatDuration}
      formatTicks={formatDurations}
      canBeLogarithmic
      {...commonProps(context)}
    />
  );
}
