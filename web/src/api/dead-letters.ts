/** Dead letters, grouped by error. */

import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";

import { unwrap, api, type Schemas } from "@/api/http-client";
import { queryKeys } from "@/api/query-keys";
import type { Change } from "@/live/query-refresher";

export type DeadLetterGroup = Schemas["DeadGroup"];
export type DeadLetter = Schemas["Job"];

export interface DeadLetterFilters {
  readonly queue?: string;
  readonly error?: string;
  readonly text?: string;
  readonly group?: string;
}

/** Events that add or remove a dead letter. */
const VERBS = new Set(["failed", "redrive", "delete", "purge", "reap"]);

function affectsDeadLetters(queue: string | undefined) {
  return (change: Change) => VERBS.has(change.verb) && (queue === undefined || change.queue === queue);
}

export function deadLetterGroupsQuery(queue: string | undefined) {
  return queryOptions({
    queryKey: queryKeys.deadLetterGroups(queue),
    queryFn: () => unwrap(api.GET("/api/dead/groups", { params: { query: { queue, samples: 3, limit: 200 } } })),
    meta: { live: affectsDeadLetters(queue) },
  });
}

export function deadLettersQuery(filters: DeadLetterFilters) {
  return infiniteQueryOptions({
    queryKey: queryKeys.deadLetters(filters),
    queryFn: ({ pageParam }) =>
      unwrap(api.GET("/api/dead", { params: { query: { ...filters, cursor: pageParam, limit: 50 } } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.cursor ?? undefined,
    meta: { live: affectsDeadLetters(filters.queue) },
  });
}
