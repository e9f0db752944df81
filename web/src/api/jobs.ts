/** Jobs, many at a time. */

import { infiniteQueryOptions, queryOptions, type InfiniteData } from "@tanstack/react-query";

import { answer, api, type Schemas } from "@/api/client";
import { keys } from "@/api/keys";
import { toQuery, type Filter } from "@/lib/filter";
import { withText } from "@/lib/json";
import { serverNow } from "@/lib/now";
import { EVERYWHERE, type Change } from "@/live/changes";

export type Job = Schemas["Job"];
export type Stats = Schemas["Stats"];

export interface JobsPage {
  readonly jobs: readonly Job[];
  /** Where the next page begins; null where there is none. */
  readonly cursor: string | null;
  /** Records that were looked at to find these. */
  readonly examined: number;
  /** Those of `jobs` that have been found to match no longer, by `keyOf`. */
  readonly gone?: ReadonlySet<string>;
}

export type JobsData = InfiniteData<JobsPage, string | null>;

export type Order = "newest" | "oldest" | undefined;

export const PAGE_SIZE = 100;

async function readPage(filter: Filter, order: Order, cursor: string | null, signal?: AbortSignal): Promise<JobsPage> {
  const query = { ...toQuery(filter, serverNow()), order, cursor, limit: PAGE_SIZE };
  const { jobs, cursor: next, examined } = await answer(api.GET("/api/jobs", { params: { query }, signal }));
  return { jobs, cursor: next, examined };
}

/** Whether a change can matter to a list. A text is looked for in many records: not again with every change. */
function concerns(filter: Filter) {
  return ({ queue }: Change) =>
    filter.text === undefined && (filter.queue === undefined ? queue !== EVERYWHERE : filter.queue === queue);
}

/** The list as it was scrolled through. It is never read again as a whole: `lookQuery` keeps what is in view fresh. */
export function jobsQuery(filter: Filter, order: Order) {
  return infiniteQueryOptions({
    queryKey: keys.jobs({ ...filter, order }),
    queryFn: ({ pageParam, signal }) => readPage(filter, order, pageParam, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.cursor,
    staleTime: Infinity,
    // Coming back, the list begins at its top again.
    gcTime: 0,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  });
}

/** One page of the list as it is now. */
export function lookQuery(filter: Filter, order: Order, cursor: string | null, isEnabled: boolean) {
  return queryOptions({
    queryKey: ["jobs-now", { ...filter, order }, cursor],
    queryFn: ({ signal }) => readPage(filter, order, cursor, signal),
    enabled: isEnabled,
    gcTime: 0,
    meta: { live: concerns(filter) },
  });
}

/** How many jobs are in each state. */
export function statsQuery(queue: string | undefined) {
  return queryOptions({
    queryKey: keys.stats(queue),
    queryFn: async ({ signal }): Promise<Stats> =>
      (await answer(api.GET("/api/jobs/stats", { params: { query: { queue } }, signal }))).stats,
    meta: { live: (change) => queue === undefined || change.queue === queue },
  });
}

/** The first jobs that match, for choosing from. */
export function searchQuery(filter: Filter) {
  return queryOptions({
    queryKey: ["jobs-found", filter],
    queryFn: async ({ signal }) => (await readPage(filter, undefined, null, signal)).jobs,
  });
}

export type NewJob = Omit<Schemas["NewJob"], "data">;
export type NewJobAnswer = Schemas["NewJobAnswer"];

/** Stores a job. Sent again with the same key it makes no second one. `data` is JSON, with every digit. */
export async function enqueueJob(job: NewJob, data: string, key: string): Promise<NewJobAnswer> {
  const body = data.trim() === "" ? JSON.stringify(job) : withText(job, "data", data);
  return answer(
    api.POST("/api/jobs", {
      params: { header: { "Idempotency-Key": key } },
      body: job,
      bodySerializer: () => body,
    }),
  );
}

/** The job that another one is to be a copy of. */
export function copiedQuery(id: string | undefined) {
  return queryOptions({
    queryKey: ["job-copied", id],
    queryFn: async ({ signal }) => {
      const path = { job_id: id ?? "" };
      return (await answer(api.GET("/api/jobs/{job_id}", { params: { path }, signal }))).job;
    },
    enabled: id !== undefined,
    staleTime: Infinity,
  });
}
