/** Tasks that jobs can be enqueued for. */

import { queryOptions } from "@tanstack/react-query";

import { api, unwrap, type Schemas } from "@/api/http-client";
import { queryKeys } from "@/api/query-keys";

export type TaskInfo = Schemas["TaskInfo"];

/** No event reports that a worker has announced tasks. */
const STALE_MS = 5000;

export const tasksQuery = queryOptions({
  queryKey: queryKeys.tasks,
  queryFn: async ({ signal }): Promise<readonly TaskInfo[]> => (await unwrap(api.GET("/api/tasks", { signal }))).tasks,
  staleTime: STALE_MS,
});
