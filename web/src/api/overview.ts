/** The overview: queues, rates, workers and alerts. */

import { queryOptions } from "@tanstack/react-query";

import { unwrap, api, type Schemas } from "@/api/http-client";
import { queryKeys } from "@/api/query-keys";
import { syncServerClock } from "@/lib/server-clock";
import { isStateChange } from "@/live/query-refresher";

export type Overview = Schemas["OverviewResponse"];
export type OverviewQueue = Schemas["OverviewQueue"];
export type Alert = Schemas["Alert"];

/** No event reports heartbeats, or jobs that only wait longer. */
const IDLE_POLL_MS = 5000;

/** The server caches the overview for all clients: right after a change it may still be the previous one. */
const STALE_POLL_MS = 300;

/** Until the first job arrives. */
const FIRST_JOB_POLL_MS = 1000;
let latestChange = 0;

export const overviewQuery = queryOptions({
  queryKey: queryKeys.overview,
  queryFn: async (): Promise<Overview> => {
    const overview = await unwrap(api.GET("/api/overview"));
    syncServerClock(overview.at);
    return overview;
  },
  refetchInterval: ({ state: { data } }) => {
    if (data === undefined) return IDLE_POLL_MS;
    if (Date.parse(data.at) < latestChange) return STALE_POLL_MS;
    return data.queues.length === 0 ? FIRST_JOB_POLL_MS : IDLE_POLL_MS;
  },
  meta: {
    live: (change) => {
      if (!isStateChange(change)) return false;
      latestChange = Math.max(latestChange, Date.parse(change.at));
      return true;
    },
  },
});
