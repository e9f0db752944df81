/** Dead letters: what failed for good, grouped by why. */

import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";

import { answer, api, type Schemas } from "@/api/client";
import { keys } from "@/api/keys";
import type { Change } from "@/live/changes";

export type DeadGroup = Schemas["DeadGroup"];
export type DeadJob = Schemas["Job"];

export interface DeadFilters {
  readonly queue?: string;
  readonly error?: string;
  readonly text?: string;
  readonly group?: string;
}

/** What adds a dead letter, or takes one away. */
const VERBS = new Set(["failed", "redrive", "delete", "purge", "reap"]);

function concerns(queue: string | undefined) {
  return (change: Change) => VERBS.has(change.verb) && (queue === undefined || change.queue === queue);
}

export function deadGroupsQuery(queue: string | undefined) {
  return queryOptions({
    queryKey: keys.deadGroups(queue),
    queryFn: () => answer(api.GET("/api/dead/groups", { params: { query: { queue, samples: 3, limit: 200 } } })),
    meta: { live: concerns(queue) },
  });
}

export function deadJobsQuery(filters: DeadFilters) {
  return infiniteQueryOptions({
    queryKey: [...keys.deadGroups(filters.queue), "jobs", filters],
    queryFn: ({ pageParam }) =>
      answer(api.GET("/api/dead", { params: { query: { ...filters, cursor: pageParam, limit: 50 } } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.cursor ?? undefined,
    meta: { live: concerns(filters.queue) },
  });
}
