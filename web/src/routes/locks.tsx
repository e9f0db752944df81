/** The locks page: holders and waiting jobs. */

import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useCallback } from "react";

import { locksQuery } from "@/api/locks";
import { overviewQuery } from "@/api/overview";
import { SelectField } from "@/components/form-fields";
import { LoadMoreButton } from "@/components/load-more-button";
import { EmptyState, ErrorState, NoMatches, LoadingState } from "@/components/loading-empty-error-states";
import { LockList } from "@/components/locks/lock-list";
import { PageLayout } from "@/components/page-layout";
import { SearchField } from "@/components/search-field";
import { queueSelectOptions } from "@/lib/queue-select-options";
import { usePausablePolling, usePausableQuery } from "@/live/use-pausable-polling";
import type { LocksSearch } from "@/routes/locks.search-params";

const route = getRouteApi("/authenticated/locks");
/** A lease that expires releases its lock without an event. */
const POLL_MS = 5000;

export function LocksRoute() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const overview = useQuery(usePausableQuery(overviewQuery));
  const locks = useInfiniteQuery({ ...locksQuery(search), refetchInterval: usePausablePolling(POLL_MS) });
  const filter = useCallback(
    (change: LocksSearch) => void navigate({ search: (before) => ({ ...before, ...change }), replace: true }),
    [navigate],
  );
  const filterName = useCallback((lock: string) => filter({ lock: lock || undefined }), [filter]);
  const found = locks.data?.pages.flatMap((page) => page.locks);
  const isFiltered = search.queue !== undefined || search.lock !== undefined;

  return (
    <PageLayout
      title="Locks"
      lead="Jobs with the same lock run one at a time."
      actions={
        <>
          <SearchField label="Lock name" value={search.lock ?? ""} onChange={filterName} />
          <SelectField
            label="Queue"
            isLabelHidden
            className="w-40"
            value={search.queue ?? ""}
            onChange={(queue) => filter({ queue: queue || undefined })}
            options={queueSelectOptions(overview.data?.queues, search.queue)}
          />
        </>
      }
    >
      {found === undefined ? (
        locks.error ? (
          <ErrorState error={locks.error} onRetry={() => void locks.refetch()} />
        ) : (
          <LoadingState />
        )
      ) : found.length > 0 ? (
        <LockList locks={found} />
      ) : isFiltered ? (
        <NoMatches what="locks" onClear={() => filter({ queue: undefined, lock: undefined })} />
      ) : (
        <EmptyState title="No locks">Locks appear here while a job holds them or waits for them.</EmptyState>
      )}
      <LoadMoreButton
        hasMore={locks.hasNextPage}
        isBusy={locks.isFetchingNextPage}
        onMore={() => void locks.fetchNextPage()}
      />
    </PageLayout>
  );
}
