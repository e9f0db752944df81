/** Metrics over time: throughput, latency, hours of the week, tasks. */

import { queryOptions } from "@tanstack/react-query";

import { unwrap, api, type Schemas } from "@/api/http-client";
import { queryKeys } from "@/api/query-keys";
import { HOUR_MS, WEEKS } from "@/lib/heatmap-hours";

export type MetricPoint = Schemas["MetricPoint"];
export type MetricsHistory = Schemas["MetricsResponse"];
export type TaskMetrics = Schemas["TaskMetrics"];

/** How far back, the step width, and the refresh interval. */
export const RANGES = {
  hour: { label: "Hour", words: "the last hour", sinceS: 3600, stepS: 60, everyMs: 5000 },
  day: { label: "Day", words: "the last day", sinceS: 86_400, stepS: 900, everyMs: 30_000 },
  month: { label: "Month", words: "the last 30 days", sinceS: 30 * 86_400, stepS: 6 * 3600, everyMs: 300_000 },
} as const;

export type Range = keyof typeof RANGES;

/** Refresh interval of the hours of the week. */
export const WEEKLY_HOURS_REFRESH_MS = 600_000;

export function metricsHistoryQuery(range: Range, queue: string | undefined) {
  const { sinceS: since, stepS: step } = RANGES[range];
  return queryOptions({
    queryKey: queryKeys.metrics({ range, queue }),
    queryFn: () => unwrap(api.GET("/api/metrics/history", { params: { query: { since, step, queue } } })),
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

export function taskMetricsQuery(order: "slowest" | "failing", range: Range, queue: string | undefined) {
  return queryOptions({
    queryKey: queryKeys.metrics({ tasks: order, range, queue }),
    queryFn: async (): Promise<TaskMetrics[]> => {
      const query = { order, since: RANGES[range].sinceS, limit: 5, queue };
      return (await unwrap(api.GET("/api/metrics/tasks", { params: { query } }))).tasks;
    },
  });
}
