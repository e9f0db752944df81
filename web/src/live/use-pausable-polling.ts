/** Polling for data without events; stops while live updates are paused or the tab is hidden. */

import { useLive } from "@/live/live-provider";

/** The value of `refetchInterval`. The query cache itself stops while the tab is hidden. */
export function usePausablePolling(ms: number): number | false {
  return useLive().status === "paused" ? false : ms;
}

/** A query with its own refetch interval, suspended while live updates are paused. */
export function usePausableQuery<Q extends object>(query: Q): Q | (Q & { refetchInterval: false }) {
  return useLive().status === "paused" ? { ...query, refetchInterval: false } : query;
}
