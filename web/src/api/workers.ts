/** Workers and their running jobs. */

import { queryOptions } from "@tanstack/react-query";

import { unwrap, api, type Schemas } from "@/api/http-client";
import { queryKeys } from "@/api/query-keys";
import { NO_QUEUE, type Change } from "@/live/query-refresher";

export type Worker = Schemas["Worker"];

export type RunningJob = Schemas["RunningJob"];

/** Events that neither start nor end an attempt nor report progress. */
const IDLE_VERBS: ReadonlySet<string> = new Set(["enqueue", "log", "pause", "promote", "resume", "update"]);

export function affectsWorkers({ queue, verb }: Change): boolean {
  return queue === NO_QUEUE ? verb === "worker" : !IDLE_VERBS.has(verb);
}

export const workersQuery = queryOptions({
  queryKey: queryKeys.workers,
  queryFn: async (): Promise<Worker[]> => (await unwrap(api.GET("/api/workers"))).workers,
  meta: { live: affectsWorkers },
});

export function drainWorker(id: string) {
  return unwrap(api.POST("/api/workers/{worker_id}/drain", { params: { path: { worker_id: id } } }));
}
