/** The job list, page by page, and job search. */

import { infiniteQueryOptions, queryOptions, type InfiniteData } from "@tanstack/react-query";

import { unwrap, api, type Schemas } from "@/api/http-client";
import { queryKeys } from "@/api/query-keys";
import { toQuery, type Filter } from "@/lib/job-filter";
import { serverNow } from "@/lib/server-clock";
import { NO_QUEUE, type Change } from "@/live/query-refresher";

export type Job = Schemas["Job"];

export interface JobsPage {
  readonly jobs: readonly Job[];
  /** Cursor of the next page; null on the last. */
  readonly cursor: string | null;
  /** Number of records examined to find these. */
  readonly examined: number;
  /** Keys of the jobs that no longer match, by `runKey`. */
  readonly gone?: ReadonlySet<string>;
}

export type JobsData = InfiniteData<JobsPage, string | null>;
export type Order = "newest" | "oldest" | undefined;
export const PAGE_SIZE = 100;

async function readPage(filter: Filter, order: Order, cursor: string | null, signal?: AbortSignal): Promise<JobsPage> {
  const query = { ...toQuery(filter, serverNow()), order, cursor, limit: PAGE_SIZE };
  const { jobs, cursor: next, examined } = await unwrap(api.GET("/api/jobs", { params: { query }, signal }));
  return { jobs, cursor: next, examined };
}

/** Whether a change affects a list. A text search examines many records: it is not repeated with every change. */
function affectsList(filter: Filter) {
  return ({ queue }: Change) =>
    filter.text === undefined && (filter.queue === undefined ? queue !== NO_QUEUE : filter.queue === queue);
}

/** The loaded pages of the list. They are never refetched as a whole: `visiblePageQuery` refreshes the page in view. */
export function jobsQuery(filter: Filter, order: Order) {
  return infiniteQueryOptions({
    queryKey: queryKeys.jobs({ ...filter, order }),
    queryFn: ({ pageParam, signal }) => readPage(filter, order, pageParam, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.cursor,
    staleTime: Infinity,
    // A list that is opened again starts at its top.
    gcTime: 0,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  });
}

/** The current content of one page of the list. */
export function visiblePageQuery(filter: Filter, order: Order, cursor: string | null, isEnabled: boolean) {
  return queryOptions({
    queryKey: queryKeys.visiblePage({ ...filter, order }, cursor),
    queryFn: ({ signal }) => readPage(filter, order, cursor, signal),
    enabled: isEnabled,
    gcTime: 0,
    meta: { live: affectsList(filter) },
  });
}

/** The first matching jobs, for the dependency picker. */
export function jobSearchQuery(filter: Filter) {
  return queryOptions({
    queryKey: queryKeys.jobSearch(filter),
    queryFn: async ({ signal }) => (await readPage(filter, undefined, null, signal)).jobs,
  });
}
