/** Marks in charts: deploys and notes. */

import { queryOptions } from "@tanstack/react-query";

import { api, unwrap, type Schemas } from "@/api/http-client";
import { queryKeys } from "@/api/query-keys";

export type Annotation = Schemas["Annotation"];

/** No event reports an annotation. */
const POLL_MS = 30_000;

/** Those from a time on, as ISO text; of a queue also those of the whole system. */
export function annotationsQuery(since: string, queue: string | undefined) {
  return queryOptions({
    queryKey: queryKeys.annotations({ since, queue }),
    queryFn: async ({ signal }): Promise<readonly Annotation[]> =>
      (await unwrap(api.GET("/api/annotations", { params: { query: { since, queue } }, signal }))).annotations,
    refetchInterval: POLL_MS,
  });
}
