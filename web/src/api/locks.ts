/** Locks that are held or wanted. */

import { infiniteQueryOptions } from "@tanstack/react-query";

import { answer, api, type Schemas } from "@/api/client";
import { keys } from "@/api/keys";
import { moves } from "@/live/changes";

export type Lock = Schemas["Lock"];

export function locksQuery(filters: { queue?: string; lock?: string }) {
  return infiniteQueryOptions({
    queryKey: keys.locks(filters),
    queryFn: ({ pageParam }) =>
      answer(api.GET("/api/locks", { params: { query: { ...filters, cursor: pageParam, limit: 100 } } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.cursor ?? undefined,
    meta: { live: (change) => moves(change) && (filters.queue === undefined || change.queue === filters.queue) },
  });
}
