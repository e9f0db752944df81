/** The number of jobs in each state. */

import { queryOptions } from "@tanstack/react-query";

import { unwrap, api, type Schemas } from "@/api/http-client";
import { queryKeys } from "@/api/query-keys";

export type Stats = Schemas["Stats"];

export function statsQuery(queue: string | undefined) {
  return queryOptions({
    queryKey: queryKeys.jobStats(queue),
    queryFn: async ({ signal }): Promise<Stats> =>
      (await unwrap(api.GET("/api/jobs/stats", { params: { query: { queue } }, signal }))).stats,
    meta: { live: (change) => queue === undefined || change.queue === queue },
  });
}
