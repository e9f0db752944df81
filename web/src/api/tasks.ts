/** Tasks that jobs can be enqueued for, and other names to choose from. */

import { queryOptions } from "@tanstack/react-query";

import { answer, api, type Schemas } from "@/api/client";
import { keys } from "@/api/keys";

export type TaskInfo = Schemas["TaskInfo"];

/** Workers announce tasks when they start: nothing tells of it. */
const OLD_MS = 5000;

export const tasksQuery = queryOptions({
  queryKey: keys.tasks,
  queryFn: async ({ signal }): Promise<readonly TaskInfo[]> => (await answer(api.GET("/api/tasks", { signal }))).tasks,
  staleTime: OLD_MS,
});

export const queueNamesQuery = queryOptions({
  queryKey: ["names", "queues"],
  queryFn: async ({ signal }): Promise<readonly string[]> =>
    (await answer(api.GET("/api/queues", { signal }))).queues.map((queue) => queue.name),
  staleTime: OLD_MS,
});

/** Words to complete a filter with: read once somebody begins to write one. */
export function wordsQuery(isWanted: boolean) {
  return queryOptions({
    queryKey: ["names", "words"],
    queryFn: ({ signal }) => answer(api.GET("/api/suggestions", { signal })),
    staleTime: OLD_MS,
    enabled: isWanted,
  });
}
