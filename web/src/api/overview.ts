/** How everything stands now, and how it went. */

import { queryOptions } from "@tanstack/react-query";

import { answer, api, type Schemas } from "@/api/client";
import { keys } from "@/api/keys";
import { HOUR_MS, WEEKS } from "@/lib/hours";
import { learnServerTime } from "@/lib/now";
import { moves } from "@/live/changes";

export type Overview = Schemas["OverviewAnswer"];
export type OverviewQueue = Schemas["OverviewQueue"];
export type Attention = Schemas["Attention"];
export type HistoryPoint = Schemas["HistoryPoint"];
export type History = Schemas["MetricsAnswer"];
export type TaskFigures = Schemas["TaskCounted"];

/** Nothing tells of heartbeats, or of jobs that only wait longer. */
const RESTING_MS = 5000;
/** The server shares one look among all who ask: right after a change it may still be from before. */
const BEHIND_MS = 300;
/** Somebody waits for the very first job. */
const FIRST_RUN_MS = 1000;
let latestChange = 0;

export const overviewQuery = queryOptions({
  queryKey: keys.overview,
  queryFn: async (): Promise<Overview> => {
    const overview = await answer(api.GET("/api/overview"));
    learnServerTime(overview.at);
    return overview;
  },
  refetchInterval: ({ state: { data } }) => {
    if (data === undefined) return RESTING_MS;
    if (Date.parse(data.at) < latestChange) return BEHIND_MS;
    return data.queues.length === 0 ? FIRST_RUN_MS : RESTING_MS;
  },
  meta: {
    live: (change) => {
      if (!moves(change)) return false;
      latestChange = Math.max(latestChange, Date.parse(change.at));
      return true;
    },
  },
});

/** How far back, in what steps, and how often the last step has moved enough to look again. */
export const RANGES = {
  hour: { label: "Hour", words: "the last hour", sinceS: 3600, stepS: 60, everyMs: 5000 },
  day: { label: "Day", words: "the last day", sinceS: 86_400, stepS: 900, everyMs: 30_000 },
  month: { label: "Month", words: "the last 30 days", sinceS: 30 * 86_400, stepS: 6 * 3600, everyMs: 300_000 },
} as const;

export type Range = keyof typeof RANGES;

/** How often the hours of the week are worth another look. */
export const WEEKS_MS = 600_000;

export function historyQuery(range: Range, queue: string | undefined) {
  const { sinceS: since, stepS: step } = RANGES[range];
  return queryOptions({
    queryKey: keys.metrics({ range, queue }),
    queryFn: () => answer(api.GET("/api/metrics/history", { params: { query: { since, step, queue } } })),
  });
}

/** What every hour of the last weeks brought. It is a long answer of which little changes. */
export function weeksQuery(queue: string | undefined) {
  return queryOptions({
    queryKey: keys.metrics({ hours: WEEKS, queue }),
    queryFn: async () => {
      const query = { since: (WEEKS * 7 * 24 * HOUR_MS) / 1000, step: HOUR_MS / 1000, queue };
      const { points } = await answer(api.GET("/api/metrics/history", { params: { query } }));
      return points.map(({ at, completed, failed }) => ({ at, completed, failed }));
    },
    staleTime: WEEKS_MS,
  });
}

export function tasksQuery(order: "slowest" | "failing", range: Range, queue: string | undefined) {
  return queryOptions({
    queryKey: keys.metrics({ tasks: order, range, queue }),
    queryFn: async (): Promise<TaskFigures[]> => {
      const query = { order, since: RANGES[range].sinceS, limit: 5, queue };
      return (await answer(api.GET("/api/metrics/tasks", { params: { query } }))).tasks;
    },
  });
}
