/** Queue actions. The state of the queues is in the overview. */

import { unwrap, api, type Schemas } from "@/api/http-client";

export type Purge = Schemas["PurgeResponse"];

export function pauseQueue(queue: string) {
  return unwrap(api.POST("/api/queues/{queue}/pause", { params: { path: { queue } } }));
}

export function resumeQueue(queue: string) {
  return unwrap(api.POST("/api/queues/{queue}/resume", { params: { path: { queue } } }));
}

/** Without `confirm` (the queue's name) it only returns the number of jobs it would delete. */
export function purgeQueue(queue: string, confirm?: string): Promise<Purge> {
  return unwrap(api.POST("/api/queues/{queue}/purge", { params: { path: { queue } }, body: { confirm } }));
}
