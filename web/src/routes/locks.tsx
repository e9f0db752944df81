import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useCallback } from "react";

import { locksQuery } from "@/api/locks";
import { overviewQuery } from "@/api/overview";
import { FilterField } from "@/components/filter-field";
import { SelectField } from "@/components/field";
import { LockList } from "@/components/locks/lock-list";
import { Empty, Failure, FilteredEmpty, Loading } from "@/components/looks";
import { More } from "@/components/more";
import { Page } from "@/components/page";
import { queueOptions } from "@/lib/queues";
import { usePolling, useWhileLive } from "@/live/polling";
import type { LocksSearch } from "@/routes/locks.search";

const route = getRouteApi("/inside/locks");
/** A lease that runs out frees a lock without a word. */
const LOOK_MS = 5000;

export function LocksRoute() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const overview = useQuery(useWhileLive(overviewQuery));
  const locks = useInfiniteQuery({ ...locksQuery(search), refetchInterval: usePolling(LOOK_MS) });
  const filter = useCallback(
    (change: LocksSearch) => void navigate({ search: (before) => ({ ...before, ...change }), replace: true }),
    [navigate],
  );
  const filterName = useCallback((lock: string) => filter({ lock: lock || undefined }), [filter]);
  const found = locks.data?.pages.flatMap((page) => page.locks);
  const isFiltered = search.queue !== undefined || search.lock !== undefined;

  return (
    <Page
      title="Locks"
      lead="Jobs with the same lock run one at a time."
      actions={
        <>
          <FilterField label="Name of a lock" value={search.lock ?? ""} onChange={filterName} />
          <SelectField
            label="Queue"
            isLabelHidden
            className="w-40"
            value={search.queue ?? ""}
            onChange={(queue) => filter({ queue: queue || undefined })}
            options={queueOptions(overview.data?.queues, search.queue)}
          />
        </>
      }
    >
      {found === undefined ? (
        locks.error ? (
          <Failure error={locks.error} onRetry={() => void locks.refetch()} />
        ) : (
          <Loading />
        )
      ) : found.length > 0 ? (
        <LockList locks={found} />
      ) : isFiltered ? (
        <FilteredEmpty what="locks" onClear={() => filter({ queue: undefined, lock: undefined })} />
      ) : (
        <Empty title="No lock is held">
          A job that is enqueued with a lock shows up here while it has it, or waits.
        </Empty>
      )}
      <More hasMore={locks.hasNextPage} isBusy={locks.isFetchingNextPage} onMore={() => void locks.fetchNextPage()} />
    </Page>
  );
}
