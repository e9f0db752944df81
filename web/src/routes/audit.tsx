/** The audit page: who changed what. */

import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useCallback } from "react";

import { auditQuery } from "@/api/audit-log";
import { ApiError } from "@/api/http-client";
import { useHasRole } from "@/api/session";
import { AuditList } from "@/components/audit/audit-list";
import { LoadMoreButton } from "@/components/load-more-button";
import { EmptyState, ErrorState, NoMatches, LoadingState } from "@/components/loading-empty-error-states";
import { PageLayout } from "@/components/page-layout";
import { SearchField } from "@/components/search-field";
import { usePausablePolling } from "@/live/use-pausable-polling";
import type { AuditSearch } from "@/routes/audit.search-params";

const route = getRouteApi("/authenticated/audit");
const POLL_MS = 5000;

export function AuditRoute() {
  const isAdmin = useHasRole("admin");
  return (
    <PageLayout title="Audit" lead={isAdmin ? "Changes made through the API and this dashboard" : undefined}>
      {isAdmin ? <Changes /> : <ErrorState error={new ApiError("Requires the admin role.", 403, "forbidden")} />}
    </PageLayout>
  );
}

function Changes() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const audit = useInfiniteQuery({ ...auditQuery(search), refetchInterval: usePausablePolling(POLL_MS) });
  const filter = useCallback(
    (change: AuditSearch) => void navigate({ search: (before) => ({ ...before, ...change }), replace: true }),
    [navigate],
  );
  const byWho = useCallback((who: string) => filter({ who: who || undefined }), [filter]);
  const byAction = useCallback((action: string) => filter({ action: action || undefined }), [filter]);
  const byTarget = useCallback((target: string) => filter({ target: target || undefined }), [filter]);
  const entries = audit.data?.pages.flatMap((page) => page.entries);
  const isFiltered = Object.values(search).some(Boolean);

  return (
    <>
      <div className="flex flex-wrap gap-2">
        <SearchField label="Job or queue" value={search.target ?? ""} onChange={byTarget} />
        <SearchField label="Action (for example pause)" value={search.action ?? ""} onChange={byAction} />
        <SearchField label="User" value={search.who ?? ""} onChange={byWho} />
      </div>
      {entries === undefined ? (
        audit.error ? (
          <ErrorState error={audit.error} onRetry={() => void audit.refetch()} />
        ) : (
          <LoadingState lines={8} />
        )
      ) : entries.length > 0 ? (
        <AuditList entries={entries} />
      ) : isFiltered ? (
        <NoMatches what="changes" onClear={() => filter({ who: undefined, action: undefined, target: undefined })} />
      ) : (
        <EmptyState title="No changes yet">Actions such as pause, cancel and redrive appear here.</EmptyState>
      )}
      <LoadMoreButton
        hasMore={audit.hasNextPage}
        isBusy={audit.isFetchingNextPage}
        onMore={() => void audit.fetchNextPage()}
      />
    </>
  );
}
