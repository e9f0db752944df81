/** For what no event tells of: read again from time to time, but not while everything is held still or nobody looks. */

import { useLive } from "@/live/live";

/** What `refetchInterval` takes. The query cache rests by itself while the tab is hidden. */
export function usePolling(ms: number): number | false {
  return useLive().status === "paused" ? false : ms;
}

/** A query that says itself how often it is to be read again, unless everything is held still. */
export function useWhileLive<Q extends object>(query: Q): Q | (Q & { refetchInterval: false }) {
  return useLive().status === "paused" ? { ...query, refetchInterval: false } : query;
}
