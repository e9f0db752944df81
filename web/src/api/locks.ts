/** Locks: holders and waiters. */

import { infiniteQueryOptions } from "@tanstack/react-query";

import { unwrap, api, type Schemas } from "@/api/http-client";
import { queryKeys } from "@/api/query-keys";
import { isStateChange } from "@/live/query-refresher";

export type Lock = Schemas["Lock"];

export function locksQuery(filters: { queue?: string; lock?: string }) {
  return infiniteQueryOptions({
    queryKey: queryKeys.locks(filters),
    queryFn: ({ pageParam }) =>
      unwrap(api.GET("/api/locks", { params: { query: { ...filters, cursor: pageParam, limit: 100 } } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.cursor ?? undefined,
    meta: {
      live: (change) => isStateChange(change) && (filters.queue === undefined || change.queue === filters.queue),
    },
  });
}
