/** Names to suggest: in the filter bar, in forms and in the command palette. */

import { queryOptions } from "@tanstack/react-query";

import { api, unwrap } from "@/api/http-client";
import { queryKeys } from "@/api/query-keys";

const MAX_WORKFLOWS = 100;
const STALE_MS = 5000;

export const queueNamesQuery = queryOptions({
  queryKey: queryKeys.suggestions("queues"),
  queryFn: async ({ signal }): Promise<readonly string[]> =>
    (await unwrap(api.GET("/api/queues", { signal }))).queues.map((queue) => queue.name),
  staleTime: STALE_MS,
});

/** Values for the filter bar: requested when the user starts to type a filter. */
export function filterSuggestionsQuery(isEnabled: boolean) {
  return queryOptions({
    queryKey: queryKeys.suggestions("filter"),
    queryFn: ({ signal }) => unwrap(api.GET("/api/suggestions", { signal })),
    staleTime: STALE_MS,
    enabled: isEnabled,
  });
}

export const workflowAndScheduleNamesQuery = queryOptions({
  queryKey: queryKeys.suggestions("workflows-and-schedules"),
  queryFn: async ({ signal }): Promise<{ workflows: readonly string[]; schedules: readonly string[] }> => {
    const [{ workflows }, { schedules }] = await Promise.all([
      unwrap(api.GET("/api/workflows", { params: { query: { limit: MAX_WORKFLOWS } }, signal })),
      unwrap(api.GET("/api/schedules", { signal })),
    ]);
    return { workflows: workflows.map(({ id }) => id), schedules: schedules.map(({ name }) => name) };
  },
  staleTime: STALE_MS,
});
