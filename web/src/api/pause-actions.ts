/** Pauses and resumes a queue, or a task on all workers. */

import { api, unwrap } from "@/api/http-client";

export function pauseQueue(queue: string, note = "") {
  return unwrap(api.POST("/api/queues/{queue}/pause", { params: { path: { queue } }, body: { note } }));
}

export function resumeQueue(queue: string) {
  return unwrap(api.POST("/api/queues/{queue}/resume", { params: { path: { queue } } }));
}

/** Without a queue it is paused in all queues. */
export function pauseTask(task: string, queue: string | undefined, note = "") {
  return unwrap(api.POST("/api/tasks/{task}/pause", { params: { path: { task } }, body: { note, queue } }));
}

export function resumeTask(task: string, queue: string | undefined) {
  return unwrap(api.POST("/api/tasks/{task}/resume", { params: { path: { task } }, body: { queue } }));
}
