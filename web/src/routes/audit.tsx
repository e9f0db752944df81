import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useCallback } from "react";

import { ApiError } from "@/api/client";
import { auditQuery } from "@/api/audit";
import { useMay } from "@/api/session";
import { AuditList } from "@/components/audit/audit-list";
import { FilterField } from "@/components/filter-field";
import { Empty, Failure, FilteredEmpty, Loading } from "@/components/looks";
import { More } from "@/components/more";
import { Page } from "@/components/page";
import { usePolling } from "@/live/polling";
import type { AuditSearch } from "@/routes/audit.search";

const route = getRouteApi("/inside/audit");
const LOOK_MS = 5000;

export function AuditRoute() {
  const isAdmin = useMay("admin");
  return (
    <Page title="Audit" lead={isAdmin ? "What was changed over HTTP and in this dashboard, and by whom." : undefined}>
      {isAdmin ? <Changes /> : <Failure error={new ApiError("The audit log is for admins.", 403, "forbidden")} />}
    </Page>
  );
}

function Changes() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const audit = useInfiniteQuery({ ...auditQuery(search), refetchInterval: usePolling(LOOK_MS) });
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
        <FilterField label="Job or queue" value={search.target ?? ""} onChange={byTarget} />
        <FilterField label="Action, as pause" value={search.action ?? ""} onChange={byAction} />
        <FilterField label="Who" value={search.who ?? ""} onChange={byWho} />
      </div>
      {entries === undefined ? (
        audit.error ? (
          <Failure error={audit.error} onRetry={() => void audit.refetch()} />
        ) : (
          <Loading lines={8} />
        )
      ) : entries.length > 0 ? (
        <AuditList entries={entries} />
      ) : isFiltered ? (
        <FilteredEmpty
          what="changes"
          onClear={() => filter({ who: undefined, action: undefined, target: undefined })}
        />
      ) : (
        <Empty title="Nothing has been changed yet">Pausing, cancelling, redriving: each shows up here.</Empty>
      )}
      <More hasMore={audit.hasNextPage} isBusy={audit.isFetchingNextPage} onMore={() => void audit.fetchNextPage()} />
    </>
  );
}
