/** Everything about one queue or one task: state now, rates, errors, slowest and latest jobs, workers, schedules. */

import { queryOptions } from "@tanstack/react-query";

import { api, ApiError, unwrap, type Schemas } from "@/api/http-client";
import { queryKeys } from "@/api/query-keys";
import { syncServerClock } from "@/lib/server-clock";
import { isStateChange } from "@/live/query-refresher";

/** Who paused it, when, and why. */
export type Pause = Schemas["Pause"];
export type PausedTask = Schemas["PausedTask"];

type QueueDetail = Schemas["QueueDetailResponse"];
type TaskDetail = Schemas["TaskDetailResponse"];

export type JobLine = QueueDetail["latest"][number];
/** Failures of one kind: dead letters and jobs that will be retried. */
export type ErrorSummary = QueueDetail["errors"][number];
export type ServingWorker = QueueDetail["workers"][number] & { readonly code_version?: string | null };
export type ScheduleLine = QueueDetail["schedules"][number];

/** What the two pages share, and what only one of them has. */
export type LoadDetail = Omit<QueueDetail, "queue" | "tasks" | "workers"> & {
  readonly workers: readonly ServingWorker[];
  readonly queue?: QueueDetail["queue"];
  readonly tasks?: QueueDetail["tasks"];
  readonly task?: TaskDetail["task"];
  /** The queues with jobs of the task. */
  readonly queues?: TaskDetail["queues"];
};

/** No event reports heartbeats, or jobs that only wait longer. */
const POLL_MS = 5000;

/** What does not exist is not requested again. */
function pollUnlessMissing({ state: { error } }: { state: { error: Error | null } }): number | false {
  return error instanceof ApiError && error.status === 404 ? false : POLL_MS;
}

export function queueDetailQuery(queue: string) {
  return queryOptions({
    queryKey: queryKeys.loadDetail("queue", queue),
    queryFn: async ({ signal }): Promise<LoadDetail> => {
      const params = { path: { queue } };
      return synced(await unwrap(api.GET("/api/queues/{queue}/detail", { params, signal })));
    },
    refetchInterval: pollUnlessMissing,
    meta: { live: (change) => isStateChange(change) && change.queue === queue },
  });
}

export function taskDetailQuery(task: string, queue: string | undefined) {
  return queryOptions({
    queryKey: queryKeys.loadDetail("task", task, queue),
    queryFn: async ({ signal }): Promise<LoadDetail> => {
      const params = { path: { task }, query: { queue } };
      return synced(await unwrap(api.GET("/api/tasks/{task}/detail", { params, signal })));
    },
    refetchInterval: pollUnlessMissing,
    meta: { live: (change) => isStateChange(change) && (queue === undefined || change.queue === queue) },
  });
}

function synced(detail: LoadDetail): LoadDetail {
  syncServerClock(detail.at);
  return detail;
}
