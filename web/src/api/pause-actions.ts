/** Pauses and resumes a queue. */

import { api, unwrap } from "@/api/http-client";

export function pauseQueue(queue: string) {
  return unwrap(api.POST("/api/queues/{queue}/pause", { params: { path: { queue } } }));
}

export function resumeQueue(queue: string) {
  return unwrap(api.POST("/api/queues/{queue}/resume", { params: { path: { queue } } }));
}
