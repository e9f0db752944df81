/** Workers: who is there, and what each is doing. */

import { queryOptions } from "@tanstack/react-query";

import { answer, api, type Schemas } from "@/api/client";
import { keys } from "@/api/keys";
import { EVERYWHERE, type Change } from "@/live/changes";

export type Worker = Schemas["Worker"];
export type RunningJob = Schemas["RunningJob"];

/** What neither starts nor ends an attempt, nor says how far it is. */
const IDLE_VERBS: ReadonlySet<string> = new Set(["enqueue", "log", "pause", "promote", "resume", "update"]);

export function concernsWorkers({ queue, verb }: Change): boolean {
  return queue === EVERYWHERE ? verb === "worker" : !IDLE_VERBS.has(verb);
}

export const workersQuery = queryOptions({
  queryKey: keys.workers,
  queryFn: async (): Promise<Worker[]> => (await answer(api.GET("/api/workers"))).workers,
  meta: { live: concernsWorkers },
});

export function drainWorker(id: string) {
  return answer(api.POST("/api/workers/{worker_id}/drain", { params: { path: { worker_id: id } } }));
}
