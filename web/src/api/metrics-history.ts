/** Metrics over time: throughput, latency, hours of the week, tasks. */

import { queryOptions } from "@tanstack/react-query";

import { unwrap, api, type Schemas } from "@/api/http-client";
import { queryKeys } from "@/api/query-keys";
import type { ChartPeriod, Comparison } from "@/lib/chart-period";
import { HOUR_MS, WEEKS } from "@/lib/heatmap-hours";

export type MetricPoint = Schemas["MetricPoint"];
export type MetricsHistory = Schemas["MetricsResponse"];
export type TaskMetrics = Schemas["TaskMetrics"];

/** Refresh interval of the hours of the week. */
export const WEEKLY_HOURS_REFRESH_MS = 600_000;

/** The jobs that metrics count. */
export interface MetricsScope {
  readonly queue?: string;
  readonly task?: string;
}

export function metricsHistoryQuery(
  { sinceS: since, stepS: step, until }: ChartPeriod,
  { queue, task: type }: MetricsScope,
  compare?: Comparison,
) {
  const query = { since, step, until, queue, type, compare };
  return queryOptions({
    queryKey: queryKeys.metrics({ history: query }),
    queryFn: (): Promise<MetricsHistory> => unwrap(api.GET("/api/metrics/history", { params: { query } })),
  });
}

/** Counts of every hour of the last weeks: a long response of which little changes. */
export function weeklyHoursQuery(queue: string | undefined) {
  return queryOptions({
    queryKey: queryKeys.metrics({ hours: WEEKS, queue }),
    queryFn: async () => {
      const query = { since: (WEEKS * 7 * 24 * HOUR_MS) / 1000, step: HOUR_MS / 1000, queue };
      const { points } = await unwrap(api.GET("/api/metrics/history", { params: { query } }));
      return points.map(({ at, completed, failed }) => ({ at, completed, failed }));
    },
    staleTime: WEEKLY_HOURS_REFRESH_MS,
  });
}

export function taskMetricsQuery(
  order: "slowest" | "failing",
  { sinceS: since, until }: ChartPeriod,
  queue: string | undefined,
) {
  const query = { order, since, until, limit: 5, queue };
  return queryOptions({
    queryKey: queryKeys.metrics({ tasks: query }),
    queryFn: async (): Promise<TaskMetrics[]> =>
      (await unwrap(api.GET("/api/metrics/tasks", { params: { query } }))).tasks,
  });
}
