/** Deletes the waiting jobs of a queue. */

import { unwrap, api, type Schemas } from "@/api/http-client";

export type Purge = Schemas["PurgeResponse"];

/** Without `confirm` (the queue's name) it only returns the number of jobs it would delete. */
export function purgeQueue(queue: string, confirm?: string): Promise<Purge> {
  return unwrap(api.POST("/api/queues/{queue}/purge", { params: { path: { queue } }, body: { confirm } }));
}
