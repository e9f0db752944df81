/** A list of jobs that stays fresh while one reads it. */

import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";

import { jobsQuery, lookQuery, type Job, type JobsData, type JobsPage, type Order } from "@/api/jobs";
import type { Filter } from "@/lib/filter";
import { countNew, pageAt, renewPage, renewTop } from "@/lib/rows";

const NO_JOBS: readonly Job[] = [];
const NO_KEYS: ReadonlySet<string> = new Set();

/** A reader who scrolls on wants nothing renewed; one who has stopped does. */
const REST_MS = 150;

export type LiveList = ReturnType<typeof useLiveList>;

/** The list, page by page as one scrolls. What is in view is renewed as it changes; new jobs wait until they are wanted. */
export function useLiveList(filter: Filter, order: Order) {
  const client = useQueryClient();
  const options = useMemo(() => jobsQuery(filter, order), [filter, order]);
  const query = useInfiniteQuery(options);
  const [place, setPlace] = useState(0);
  const [waiting, setWaiting] = useState(0);
  const data = query.data as JobsData | undefined;
  // Where few of many match, a page may be empty though others follow. Nothing is said before one of them is found.
  const isFound = data !== undefined && (data.pages.some((page) => page.jobs.length > 0) || !query.hasNextPage);
  const isLive = isFound && filter.text === undefined;
  const head = useQuery(lookQuery(filter, order, null, isLive));
  const cursor = data?.pageParams[place] ?? null;
  const look = useQuery(lookQuery(filter, order, cursor, isLive && place > 0));

  const change = useCallback(
    (by: (data: JobsData) => JobsData) => {
      client.setQueryData<JobsData>(options.queryKey, (old) => (old === undefined ? old : by(old)));
    },
    [client, options],
  );

  const inView = useRef(0);
  const rest = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(rest.current), []);
  const onScrolled = useCallback(
    (row: number) => {
      inView.current = row;
      clearTimeout(rest.current);
      rest.current = setTimeout(() => {
        const now = client.getQueryData<JobsData>(options.queryKey);
        if (now !== undefined) setPlace(pageAt(now, row));
      }, REST_MS);
    },
    [client, options],
  );
  useEffect(() => {
    const fresh = head.data;
    if (fresh === undefined) return;
    const isHeld = inView.current > 0 || isBusyWithRows();
    if (isHeld) {
      change((old) => renewPage(old, 0, fresh));
      setWaiting(newIn(client.getQueryData<JobsData>(options.queryKey), fresh));
    } else {
      change((old) => renewTop(old, fresh));
      setWaiting(0);
    }
  }, [head.data, change, client, options]);
  useEffect(() => {
    const fresh = look.data;
    if (fresh !== undefined) change((old) => renewPage(old, old.pageParams.indexOf(cursor), fresh));
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
    // A text may be in none of a million records: how far to look is for the reader to say.
    if (filter.text === undefined && !isError) more();
  }, [filter.text, isError, more]);
  useEffect(() => {
    if (isLookingFurther) nearEnd();
    // Again with every page: one may come in so fast that nothing else has changed.
  }, [isLookingFurther, nearEnd, data]);

  return {
    rows,
    gone,
    examined,
    waiting,
    onScrolled,
    more,
    nearEnd,
    hasMore: hasNextPage,
    isLoading: query.isPending || (isLookingFurther && !isError),
    isLoadingMore: isFetchingNextPage,
    error: query.error,
    retry: () => void (data === undefined ? query.refetch() : fetchNextPage()),
    /** Reads what is in view again. */
    look: () => void client.invalidateQueries({ queryKey: ["jobs-now"] }),
    applyNew: () => {
      const fresh = head.data;
      if (fresh !== undefined) change((old) => renewTop(old, fresh));
      setWaiting(0);
    },
  };
}

function newIn(data: JobsData | undefined, fresh: JobsPage): number {
  return countNew(data?.pages[0]?.jobs ?? NO_JOBS, fresh.jobs);
}

/** Rows must not move under the keyboard, or while some are chosen. */
function isBusyWithRows(): boolean {
  return document.querySelector('[role="row"]:focus-within, [role="row"][aria-selected="true"]') !== null;
}
