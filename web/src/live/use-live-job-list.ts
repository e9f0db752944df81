/** The job list with live updates. */

import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";

import { jobsQuery, visiblePageQuery, type Job, type JobsData, type JobsPage, type Order } from "@/api/job-list";
import { queryKeys } from "@/api/query-keys";
import type { Filter } from "@/lib/job-filter";
import { countNewJobs, pageOfRow, refreshPage, refreshTop } from "@/lib/refresh-job-pages";

const NO_JOBS: readonly Job[] = [];
const NO_KEYS: ReadonlySet<string> = new Set();

/** The view is refreshed after scrolling has paused for this long. */
const SCROLL_END_MS = 150;

export type LiveJobList = ReturnType<typeof useLiveJobList>;

/** The list, loaded page by page. Rows in view are refreshed; new jobs are counted and shown on request. */
export function useLiveJobList(filter: Filter, order: Order) {
  const client = useQueryClient();
  const options = useMemo(() => jobsQuery(filter, order), [filter, order]);
  const query = useInfiniteQuery(options);
  const [visiblePage, setVisiblePage] = useState(0);
  const [waiting, setWaiting] = useState(0);
  const data = query.data as JobsData | undefined;
  // A page may be empty although others follow: shown as loading until a match is found.
  const isFound = data !== undefined && (data.pages.some((page) => page.jobs.length > 0) || !query.hasNextPage);
  const isLive = isFound && filter.text === undefined;
  const head = useQuery(visiblePageQuery(filter, order, null, isLive));
  const cursor = data?.pageParams[visiblePage] ?? null;
  const look = useQuery(visiblePageQuery(filter, order, cursor, isLive && visiblePage > 0));

  const change = useCallback(
    (by: (data: JobsData) => JobsData) => {
      client.setQueryData<JobsData>(options.queryKey, (old) => (old === undefined ? old : by(old)));
    },
    [client, options],
  );

  const inView = useRef(0);
  const rest = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(rest.current), []);
  const onScroll = useCallback(
    (row: number) => {
      inView.current = row;
      clearTimeout(rest.current);
      rest.current = setTimeout(() => {
        const now = client.getQueryData<JobsData>(options.queryKey);
        if (now !== undefined) setVisiblePage(pageOfRow(now, row));
      }, SCROLL_END_MS);
    },
    [client, options],
  );
  useEffect(() => {
    const fresh = head.data;
    if (fresh === undefined) return;
    const isHeld = inView.current > 0 || isUsingRows();
    if (isHeld) {
      change((old) => refreshPage(old, 0, fresh));
      setWaiting(newJobsIn(client.getQueryData<JobsData>(options.queryKey), fresh));
    } else {
      change((old) => refreshTop(old, fresh));
      setWaiting(0);
    }
  }, [head.data, change, client, options]);
  useEffect(() => {
    const fresh = look.data;
    if (fresh !== undefined) change((old) => refreshPage(old, old.pageParams.indexOf(cursor), fresh));
  }, [look.data, cursor, change]);

  const rows = useMemo(() => data?.pages.flatMap((page) => page.jobs) ?? NO_JOBS, [data]);
  const gone = useMemo(() => {
    const keys = data?.pages.flatMap((page) => [...(page.gone ?? NO_KEYS)]) ?? [];
    return keys.length > 0 ? new Set(keys) : NO_KEYS;
  }, [data]);
  const examined = useMemo(() => data?.pages.reduce((sum, page) => sum + page.examined, 0) ?? 0, [data]);

  const { fetchNextPage, hasNextPage, isFetchingNextPage, isError } = query;
  const isLookingFurther = data !== undefined && !isFound && filter.text === undefined;
  const more = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  const nearEnd = useCallback(() => {
    // A text may be in none of a million records: the user decides how far to search.
    if (filter.text === undefined && !isError) more();
  }, [filter.text, isError, more]);
  useEffect(() => {
    if (isLookingFurther) nearEnd();
    // Depends on the pages: a page may arrive without any other change.
  }, [isLookingFurther, nearEnd, data]);

  return {
    rows,
    gone,
    examined,
    waiting,
    onScroll,
    more,
    nearEnd,
    hasMore: hasNextPage,
    isLoading: query.isPending || (isLookingFurther && !isError),
    isLoadingMore: isFetchingNextPage,
    error: query.error,
    retry: () => void (data === undefined ? query.refetch() : fetchNextPage()),
    /** Refetches the pages in view. */
    refreshVisible: () => void client.invalidateQueries({ queryKey: queryKeys.allVisiblePages }),
    applyNew: () => {
      const fresh = head.data;
      if (fresh !== undefined) change((old) => refreshTop(old, fresh));
      setWaiting(0);
    },
  };
}

function newJobsIn(data: JobsData | undefined, fresh: JobsPage): number {
  return countNewJobs(data?.pages[0]?.jobs ?? NO_JOBS, fresh.jobs);
}

/** Rows must not move while one has the focus or some are selected. */
function isUsingRows(): boolean {
  return document.querySelector('[role="row"]:focus-within, [role="row"][aria-selected="true"]') !== null;
}
