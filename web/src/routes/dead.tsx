import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useCallback, useState } from "react";

import { deadGroupsQuery, deadJobsQuery, type DeadFilters, type DeadGroup } from "@/api/dead";
import { keys } from "@/api/keys";
import { runningOperationsQuery, stopOperation, type Action, type Where } from "@/api/operations";
import { overviewQuery } from "@/api/overview";
import { useMay, useSession } from "@/api/session";
import { Button } from "@/components/button";
import { GroupList } from "@/components/dead/group-list";
import { DeadJobList } from "@/components/dead/job-list";
import { SelectField } from "@/components/field";
import { FilterField } from "@/components/filter-field";
import { Empty, Failure, FilteredEmpty, Loaded, Loading } from "@/components/looks";
import { More } from "@/components/more";
import { OperationDialog, type Target } from "@/components/operations/dialog";
import { RunningOperations } from "@/components/operations/running";
import { Page } from "@/components/page";
import { useAct } from "@/lib/act";
import { plural } from "@/lib/numbers";
import { queueOptions } from "@/lib/queues";
import { usePolling, useWhileLive } from "@/live/polling";
import type { DeadSearch } from "@/routes/dead.search";

const route = getRouteApi("/inside/dead");
/** Dead letters also go when they are too old. */
const LOOK_MS = 15_000;

interface Asked {
  readonly action: Action;
  readonly target: Target;
}

export function DeadRoute() {
  const given = route.useSearch();
  const { queues } = useSession();
  // Whoever is limited to some queues has to name one.
  const search: DeadSearch = { ...given, queue: given.queue ?? queues[0] };
  const navigate = route.useNavigate();
  const client = useQueryClient();
  const mayRedrive = useMay("operator");
  const mayDeleteMany = useMay("admin");
  const overview = useQuery(useWhileLive(overviewQuery));
  const groups = useQuery({ ...deadGroupsQuery(search.queue), refetchInterval: usePolling(LOOK_MS) });
  const running = useQuery(useWhileLive(runningOperationsQuery));
  const [asked, setAsked] = useState<Asked | null>(null);
  const stop = useAct({ act: stopOperation, said: () => "It stops", changes: [keys.operations] });

  const filter = useCallback(
    (change: DeadSearch) =>
      void navigate({ search: (before) => ({ ...before, ...change }), replace: true, resetScroll: false }),
    [navigate],
  );
  const filterText = useCallback((text: string) => filter({ text: text || undefined }), [filter]);
  const filterError = useCallback((error: string) => filter({ error: error || undefined }), [filter]);
  const clear = () => filter({ queue: undefined, error: undefined, text: undefined, group: undefined });

  const isFiltered = Boolean(given.queue ?? search.error ?? search.text);
  const total = groups.data?.total ?? 0;
  const askOne = (action: Action) => (id: string) => setAsked({ action, target: { kind: "chosen", ids: [id] } });
  const askAll = (action: Action) => setAsked({ action, target: allOf(search) });

  return (
    <Page
      title="Dead letters"
      lead={groups.data && (total === 0 ? "None" : `${plural(total, "job")} failed for good`)}
      actions={
        mayRedrive &&
        total > 0 && (
          <>
            {mayDeleteMany && (
              <Button onClick={() => askAll("delete")}>{isFiltered ? "Delete matching" : "Delete all"}</Button>
            )}
            <Button look="primary" onClick={() => askAll("redrive")}>
              {isFiltered ? "Redrive matching" : "Redrive all"}
            </Button>
          </>
        )
      }
    >
      <div className="flex flex-wrap gap-2">
        <FilterField label="Text in a job" value={search.text ?? ""} onChange={filterText} />
        <FilterField label="Class of the error" value={search.error ?? ""} onChange={filterError} />
        <SelectField
          label="Queue"
          isLabelHidden
          className="w-40"
          value={search.queue ?? ""}
          onChange={(queue) => filter({ queue: queue || undefined, group: undefined })}
          options={queueOptions(overview.data?.queues, search.queue, queues.length === 0)}
        />
      </div>
      <RunningOperations
        operations={running.data ?? []}
        mayStop={mayRedrive}
        onStop={(operation) => stop.mutate(operation)}
      />
      {search.text === undefined ? (
        <Loaded query={groups} lines={8}>
          {(data) => {
            const shown = data.groups.filter(({ error }) => search.error === undefined || error === search.error);
            if (shown.length > 0) {
              return (
                <GroupList
                  groups={shown}
                  open={search.group}
                  onOpen={(group) => filter({ group })}
                  onRedrive={
                    mayRedrive ? (group) => setAsked({ action: "redrive", target: targetOf(group) }) : undefined
                  }
                  onDelete={
                    mayDeleteMany ? (group) => setAsked({ action: "delete", target: targetOf(group) }) : undefined
                  }
                >
                  {(group) => (
                    <Jobs
                      filters={{ queue: group.queue, group: group.id }}
                      onRedrive={mayRedrive ? askOne("redrive") : undefined}
                      onDelete={mayRedrive ? askOne("delete") : undefined}
                      onClear={() => filter({ group: undefined })}
                    />
                  )}
                </GroupList>
              );
            }
            if (isFiltered) return <FilteredEmpty what="dead letters" onClear={clear} />;
            return (
              <Empty title="No dead letters">
                A job that fails for good, after all its attempts, is kept here until it is redriven or deleted.
              </Empty>
            );
          }}
        </Loaded>
      ) : (
        <div className="rounded-lg border bg-surface">
          <Jobs
            filters={{ queue: search.queue, error: search.error, text: search.text }}
            onRedrive={mayRedrive ? askOne("redrive") : undefined}
            onDelete={mayRedrive ? askOne("delete") : undefined}
            onClear={clear}
          />
        </div>
      )}
      {asked !== null && (
        <OperationDialog
          action={asked.action}
          target={asked.target}
          onClose={() => setAsked(null)}
          onDone={() => {
            void client.invalidateQueries({ queryKey: ["dead"] });
            void client.invalidateQueries({ queryKey: keys.operations });
            void client.invalidateQueries({ queryKey: keys.overview });
          }}
        />
      )}
    </Page>
  );
}

interface JobsProps {
  filters: DeadFilters;
  onRedrive?: (id: string) => void;
  onDelete?: (id: string) => void;
  onClear: () => void;
}

function Jobs({ filters, onRedrive, onDelete, onClear }: JobsProps) {
  const jobs = useInfiniteQuery(deadJobsQuery(filters));
  const found = jobs.data?.pages.flatMap((page) => page.jobs);
  if (found === undefined) {
    return jobs.error ? <Failure error={jobs.error} onRetry={() => void jobs.refetch()} /> : <Loading lines={4} />;
  }
  return (
    <>
      {found.length > 0 ? (
        <DeadJobList jobs={found} onRedrive={onRedrive} onDelete={onDelete} />
      ) : (
        !jobs.hasNextPage && <FilteredEmpty what="dead letters" onClear={onClear} />
      )}
      <More hasMore={jobs.hasNextPage} isBusy={jobs.isFetchingNextPage} onMore={() => void jobs.fetchNextPage()} />
    </>
  );
}

function targetOf({ queue, id, error, message }: DeadGroup): Target {
  const where: Where = { state: "FAILED", queue, group: id };
  return { kind: "matching", where, words: `All of ${queue} that failed with ${error}: ${message.slice(0, 200)}` };
}

function allOf({ queue, error, text }: DeadSearch): Target {
  const where: Where = { state: "FAILED", queue, error, text };
  const words = [
    queue === undefined ? "Dead letters of all queues" : `Dead letters of ${queue}`,
    error !== undefined && `that failed with ${error}`,
    text !== undefined && `that mention “${text}”`,
  ];
  return { kind: "matching", where, words: words.filter(Boolean).join(" ") };
}
