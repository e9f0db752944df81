/** The autoscaler: its state, decisions and settings, and the pool over time. */

import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";

import { unwrap, api, type Schemas } from "@/api/http-client";
import { RANGES, type Range } from "@/lib/chart-period";
import { queryKeys } from "@/api/query-keys";
import { syncServerClock } from "@/lib/server-clock";
import { NO_QUEUE } from "@/live/query-refresher";

export type Scaling = Schemas["ScalingResponse"];
export type ScalingSettings = Schemas["ScalingSettingsBody"];
export type ScalingDecision = Schemas["ScalingDecisionBody"];
export type ScalingChange = Schemas["ChangeScaling"];
export type ScalingDryRun = Schemas["ScalingDryRunResponse"];
export type PoolHistory = Schemas["PoolHistoryResponse"];

const PAGE_SIZE = 50;

/** The state, the settings, the latest planning round, and the newest stored decision. */
export const scalingQuery = queryOptions({
  queryKey: queryKeys.scaling,
  queryFn: () => unwrap(api.GET("/api/scaling", { params: { query: { limit: 1 } } })),
  meta: { live: ({ queue, verb }) => queue === NO_QUEUE && verb === "scaling" },
});

/** Stored decisions, newest first. Not live: the page reads them again when a new one is stored. */
export const scalingDecisionsQuery = infiniteQueryOptions({
  queryKey: queryKeys.scalingDecisions,
  queryFn: async ({ pageParam }) => {
    const query = { cursor: pageParam, limit: PAGE_SIZE };
    const { decisions, cursor } = await unwrap(api.GET("/api/scaling", { params: { query } }));
    return { decisions, cursor };
  },
  initialPageParam: undefined as string | undefined,
  getNextPageParam: (page) => page.cursor ?? undefined,
});

export function poolHistoryQuery(range: Range) {
  const { sinceS: since, stepS: step } = RANGES[range];
  return queryOptions({
    queryKey: queryKeys.poolHistory(range),
    queryFn: async () => {
      const history = await unwrap(api.GET("/api/metrics/scaling", { params: { query: { since, step } } }));
      syncServerClock(history.until);
      return history;
    },
  });
}

export function changeScaling(change: ScalingChange): Promise<Scaling> {
  return unwrap(api.PATCH("/api/scaling", { body: change }));
}

/** What the autoscaler would decide now, with these settings in place of those in force. */
export function dryRunScaling(settings: Schemas["DryRunScaling"]): Promise<ScalingDryRun> {
  return unwrap(api.POST("/api/scaling/dry-run", { body: settings }));
}
