/** Workers: who is there, and what each is doing. */

import { queryOptions } from "@tanstack/react-query";

import { answer, api, type Schemas } from "@/api/client";
import { keys } from "@/api/keys";

export type Worker = Schemas["Worker"];
export type RunningJob = Schemas["RunningJob"];

export const workersQuery = queryOptions({
  queryKey: keys.workers,
  queryFn: async (): Promise<Worker[]> => (await answer(api.GET("/api/workers"))).workers,
  meta: { live: () => true },
});

export function drainWorker(id: string) {
  return answer(api.POST("/api/workers/{worker_id}/drain", { params: { path: { worker_id: id } } }));
}
