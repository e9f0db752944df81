/** What an operator does to a queue. How it stands is in the overview. */

import { answer, api, type Schemas } from "@/api/client";

export type Purge = Schemas["PurgeAnswer"];

export function pauseQueue(queue: string) {
  return answer(api.POST("/api/queues/{queue}/pause", { params: { path: { queue } } }));
}

export function resumeQueue(queue: string) {
  return answer(api.POST("/api/queues/{queue}/resume", { params: { path: { queue } } }));
}

/** Without `confirm`, the queue's name, it only says how many it would delete. */
export function purgeQueue(queue: string, confirm?: string): Promise<Purge> {
  return answer(api.POST("/api/queues/{queue}/purge", { params: { path: { queue } }, body: { confirm } }));
}
