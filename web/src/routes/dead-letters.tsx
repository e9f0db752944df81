/** The dead-letters page: groups by error, their jobs, redrive and delete. */

import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useCallback, useState } from "react";

import { runningOperationsQuery, stopOperation, type BulkAction, type OperationFilter } from "@/api/bulk-operations";
import {
  deadLetterGroupsQuery,
  deadLettersQuery,
  type DeadLetterFilters,
  type DeadLetterGroup,
} from "@/api/dead-letters";
import { overviewQuery } from "@/api/overview";
import { queryKeys } from "@/api/query-keys";
import { useHasRole, useSession } from "@/api/session";
import { BulkOperationDialog, type DialogTarget } from "@/components/bulk-operations/bulk-operation-dialog";
import { RunningOperationsList } from "@/components/bulk-operations/running-operations-list";
import { Button } from "@/components/buttons";
import { DeadLetterGroupList } from "@/components/dead-letters/dead-letter-group-list";
import { DeadLetterList } from "@/components/dead-letters/dead-letter-list";
import { SelectField } from "@/components/form-fields";
import { LoadMoreButton } from "@/components/load-more-button";
import { EmptyState, ErrorState, NoMatches, QueryContent, LoadingState } from "@/components/loading-empty-error-states";
import { PageLayout } from "@/components/page-layout";
import { SearchField } from "@/components/search-field";
import { formatPlural } from "@/lib/format-number";
import { queueSelectOptions } from "@/lib/queue-select-options";
import { useMutationWithToast } from "@/lib/use-mutation-with-toast";
import { usePausablePolling, usePausableQuery } from "@/live/use-pausable-polling";
import type { DeadLettersSearch } from "@/routes/dead-letters.search-params";

const route = getRouteApi("/authenticated/dead");
/** Dead letters also expire, without an event. */
const POLL_MS = 15_000;

interface OpenDialog {
  readonly action: BulkAction;
  readonly target: DialogTarget;
}

export function DeadLettersRoute() {
  const given = route.useSearch();
  const { queues } = useSession();
  // A token limited to some queues must name one.
  const search: DeadLettersSearch = { ...given, queue: given.queue ?? queues[0] };
  const navigate = route.useNavigate();
  const client = useQueryClient();
  const mayRedrive = useHasRole("operator");
  const mayDeleteMany = useHasRole("admin");
  const overview = useQuery(usePausableQuery(overviewQuery));
  const groups = useQuery({ ...deadLetterGroupsQuery(search.queue), refetchInterval: usePausablePolling(POLL_MS) });
  const running = useQuery(usePausableQuery(runningOperationsQuery));
  const [dialog, setDialog] = useState<OpenDialog | null>(null);
  const stop = useMutationWithToast({
    run: stopOperation,
    successMessage: () => "Stopping the operation",
    invalidates: [queryKeys.operations],
  });

  const filter = useCallback(
    (change: DeadLettersSearch) =>
      void navigate({ search: (before) => ({ ...before, ...change }), replace: true, resetScroll: false }),
    [navigate],
  );
  const filterText = useCallback((text: string) => filter({ text: text || undefined }), [filter]);
  const filterError = useCallback((error: string) => filter({ error: error || undefined }), [filter]);
  const clear = () => filter({ queue: undefined, error: undefined, text: undefined, group: undefined });

  const isFiltered = Boolean(given.queue ?? search.error ?? search.text);
  const total = groups.data?.total ?? 0;
  const openForOne = (action: BulkAction) => (id: string) =>
    setDialog({ action, target: { kind: "selected", ids: [id] } });
  const openForAll = (action: BulkAction) => setDialog({ action, target: searchTarget(search) });

  return (
    <PageLayout
      title="Dead letters"
      lead={groups.data && (total === 0 ? "None" : `${formatPlural(total, "job")} failed permanently`)}
      actions={
        mayRedrive &&
        total > 0 && (
          <>
            {mayDeleteMany && (
              <Button onClick={() => openForAll("delete")}>{isFiltered ? "Delete matching" : "Delete all"}</Button>
            )}
            <Button onClick={() => openForAll("redrive")}>{isFiltered ? "Redrive matching" : "Redrive all"}</Button>
          </>
        )
      }
    >
      <div className="flex flex-wrap gap-2">
        <SearchField label="Text in the record" value={search.text ?? ""} onChange={filterText} />
        <SearchField label="Error type" value={search.error ?? ""} onChange={filterError} />
        <SelectField
          label="Queue"
          isLabelHidden
          className="w-40"
          value={search.queue ?? ""}
          onChange={(queue) => filter({ queue: queue || undefined, group: undefined })}
          options={queueSelectOptions(overview.data?.queues, search.queue, queues.length === 0)}
        />
      </div>
      <RunningOperationsList
        operations={running.data ?? []}
        mayStop={mayRedrive}
        onStop={(operation) => stop.mutate(operation)}
      />
      {search.text === undefined ? (
        <QueryContent query={groups} lines={8}>
          {(data) => {
            const shown = data.groups.filter(({ error }) => search.error === undefined || error === search.error);
            if (shown.length > 0) {
              return (
                <DeadLetterGroupList
                  groups={shown}
                  open={search.group}
                  onOpen={(group) => filter({ group })}
                  onRedrive={
                    mayRedrive ? (group) => setDialog({ action: "redrive", target: groupTarget(group) }) : undefined
                  }
                  onDelete={
                    mayDeleteMany ? (group) => setDialog({ action: "delete", target: groupTarget(group) }) : undefined
                  }
                >
                  {(group) => (
                    <DeadLetters
                      filters={{ queue: group.queue, group: group.id }}
                      onRedrive={mayRedrive ? openForOne("redrive") : undefined}
                      onDelete={mayRedrive ? openForOne("delete") : undefined}
                      onClear={() => filter({ group: undefined })}
                    />
                  )}
                </DeadLetterGroupList>
              );
            }
            if (isFiltered) return <NoMatches what="dead letters" onClear={clear} />;
            return (
              <EmptyState title="No dead letters">
                A job that has used up its attempts is kept here until it is redriven or deleted.
              </EmptyState>
            );
          }}
        </QueryContent>
      ) : (
        <div className="rounded-lg border bg-surface">
          <DeadLetters
            filters={{ queue: search.queue, error: search.error, text: search.text }}
            onRedrive={mayRedrive ? openForOne("redrive") : undefined}
            onDelete={mayRedrive ? openForOne("delete") : undefined}
            onClear={clear}
          />
        </div>
      )}
      {dialog !== null && (
        <BulkOperationDialog
          action={dialog.action}
          target={dialog.target}
          onClose={() => setDialog(null)}
          onDone={() => {
            void client.invalidateQueries({ queryKey: queryKeys.allDeadLetters });
            void client.invalidateQueries({ queryKey: queryKeys.operations });
            void client.invalidateQueries({ queryKey: queryKeys.overview });
          }}
        />
      )}
    </PageLayout>
  );
}

interface JobsProps {
  filters: DeadLetterFilters;
  onRedrive?: (id: string) => void;
  onDelete?: (id: string) => void;
  onClear: () => void;
}

function DeadLetters({ filters, onRedrive, onDelete, onClear }: JobsProps) {
  const jobs = useInfiniteQuery(deadLettersQuery(filters));
  const found = jobs.data?.pages.flatMap((page) => page.jobs);
  if (found === undefined) {
    return jobs.error ? (
      <ErrorState error={jobs.error} onRetry={() => void jobs.refetch()} />
    ) : (
      <LoadingState lines={4} />
    );
  }
  return (
    <>
      {found.length > 0 ? (
        <DeadLetterList jobs={found} onRedrive={onRedrive} onDelete={onDelete} />
      ) : (
        !jobs.hasNextPage && <NoMatches what="dead letters" onClear={onClear} />
      )}
      <LoadMoreButton
        hasMore={jobs.hasNextPage}
        isBusy={jobs.isFetchingNextPage}
        onMore={() => void jobs.fetchNextPage()}
      />
    </>
  );
}

function groupTarget({ queue, id, error, message }: DeadLetterGroup): DialogTarget {
  const where: OperationFilter = { state: "FAILED", queue, group: id };
  return { kind: "matching", where, words: `Jobs in ${queue} that failed with ${error}: ${message.slice(0, 200)}` };
}

function searchTarget({ queue, error, text }: DeadLettersSearch): DialogTarget {
  const where: OperationFilter = { state: "FAILED", queue, error, text };
  const words = [
    queue === undefined ? "Dead letters in all queues" : `Dead letters in ${queue}`,
    error !== undefined && `that failed with ${error}`,
    text !== undefined && `containing “${text}”`,
  ];
  return { kind: "matching", where, words: words.filter(Boolean).join(" ") };
}
