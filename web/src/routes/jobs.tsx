import { useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { ArrowUp, Plus } from "lucide-react";
import { useMemo, useRef, useState } from "react";

import { jobsQuery, PAGE_SIZE, statsQuery, type Job, type Order, type Stats } from "@/api/jobs";
import { runningOperationsQuery, stopOperation, type Action } from "@/api/operations";
import { useMay, useSession } from "@/api/session";
import { wordsQuery } from "@/api/tasks";
import { Button } from "@/components/button";
import { SelectField } from "@/components/field";
import { FilterBar } from "@/components/jobs/filter-bar";
import { JobTable } from "@/components/jobs/job-table";
import { SelectionBar } from "@/components/jobs/selection-bar";
import { StateFilters } from "@/components/jobs/state-filters";
import { ViewsMenu } from "@/components/jobs/views-menu";
import { Empty, Failure, FilteredEmpty, Loading } from "@/components/looks";
import { OperationDialog, type Target } from "@/components/operations/dialog";
import { RunningOperations } from "@/components/operations/running";
import { ACTIONS } from "@/components/operations/words";
import { Page } from "@/components/page";
import { useToasts } from "@/components/toasts";
import { useChoice, type Selection } from "@/lib/choice";
import { filterOf, tokensOf, toWhere, writeToken, type Filter, type Known } from "@/lib/filter";
import { serverNow } from "@/lib/now";
import { count, plural } from "@/lib/numbers";
import { keyOf } from "@/lib/rows";
import { useShortcuts } from "@/lib/shortcuts";
import { JOB_STATES, type JobState } from "@/lib/states";
import { dropView, keepView, readViews } from "@/lib/views";
import { useLiveList, type LiveList } from "@/live/jobs";
import { listOf, type JobsSearch } from "@/routes/jobs.search";

const route = getRouteApi("/inside/jobs");

export function JobsRoute() {
  const search = route.useSearch();
  const navigate = useNavigate();
  const mayAct = useMay("operator");
  const filterInput = useRef<HTMLInputElement>(null);
  const [isWriting, setWriting] = useState(false);
  const { queues } = useSession();
  const { filter, order } = useMemo(() => listOf(search, queues), [search, queues]);
  const stats = useQuery(statsQuery(filter.queue));
  const isCountable = Object.keys(filter).every((key) => key === "state" || key === "queue");
  const counts = isCountable ? (stats.data ?? null) : null;

  function show(next: JobsSearch) {
    void navigate({ to: "/jobs", search: next });
  }

  useShortcuts({ f: () => filterInput.current?.focus() });

  return (
    <Page
      title="Jobs"
      actions={
        <>
          <Views search={{ ...filter, ...(order ? { order } : {}) }} onShow={show} />
          {mayAct && (
            <Button asChild look="primary">
              <Link to="/jobs/new">
                <Plus aria-hidden className="size-3.5" />
                New job
              </Link>
            </Button>
          )}
        </>
      }
    >
      <StateFilters state={filter.state} counts={counts} onChange={(state) => show({ ...filter, state, order })} />
      <div className="flex flex-wrap items-start gap-2">
        <FilterBar
          tokens={tokensOf(filter)}
          known={useKnown(filter, order, isWriting)}
          inputRef={filterInput}
          onOpen={() => setWriting(true)}
          onChange={(tokens) => show({ ...filterOf(tokens), order })}
        />
        <SelectField
          label="Order"
          isLabelHidden
          className="w-36 [&_select]:h-9"
          value={order ?? "usual"}
          options={ordersOf(filter.state)}
          onChange={(next) => show({ ...filter, order: next === "usual" ? undefined : next })}
        />
      </div>
      <Operations mayStop={mayAct} />
      <JobList
        // Another filter is another list: nothing that was chosen in the one before may be left.
        key={JSON.stringify([filter, order])}
        filter={filter}
        order={order}
        counts={counts}
        onClear={() => show({})}
      />
    </Page>
  );
}

interface JobListProps {
  filter: Filter;
  order: Order;
  counts: Stats | null;
  onClear: () => void;
}

function JobList({ filter, order, counts, onClear }: JobListProps) {
  const navigate = useNavigate();
  const mayAct = useMay("operator");
  const mayDeleteAll = useMay("admin");
  const list = useLiveList(filter, order);
  const { rows } = list;
  const choice = useChoice(rows);
  const { selection } = choice;
  const [asked, setAsked] = useState<{ action: Action; target: Target } | null>(null);
  const isFiltered = Object.keys(filter).length > 0;
  const actions = useMemo(
    () =>
      actionsFor(statesOf(selection, rows, filter)).filter(
        (action) => !(action === "delete" && selection.isAll) || mayDeleteAll,
      ),
    [selection, rows, filter, mayDeleteAll],
  );
  useShortcuts({ Escape: choice.clear });

  return (
    <>
      <div className="-mx-4 md:mx-0">
        {list.error !== null && rows.length === 0 ? (
          <Failure error={list.error} onRetry={list.retry} />
        ) : list.isLoading ? (
          <Loading lines={12} />
        ) : rows.length > 0 ? (
          <JobTable
            rows={rows}
            gone={list.gone}
            selection={selection}
            isSelectable={mayAct}
            onToggle={choice.toggle}
            onExtend={choice.extend}
            onToggleAll={choice.toggleLoaded}
            onOpen={(job) => void navigate({ to: "/jobs/$id", params: { id: job.jobId } })}
            onNearEnd={list.nearEnd}
            onScrolled={list.onScrolled}
          />
        ) : isFiltered ? (
          // What has not been looked through may still match.
          !list.hasMore && <FilteredEmpty what="jobs" onClear={onClear} />
        ) : (
          <Empty title="There are no jobs yet">What programs enqueue is shown here as it happens.</Empty>
        )}
        <ListEnd list={list} filter={filter} />
      </div>
      {list.waiting > 0 && <NewJobs waiting={list.waiting} onShow={list.applyNew} />}
      {(selection.isAll || selection.keys.size > 0) && (
        <SelectionBar
          chosen={selection.keys.size}
          isAll={selection.isAll}
          matching={counts === null ? null : filter.state === undefined ? total(counts) : counts[filter.state]}
          mayChooseAll={isFiltered}
          actions={actions}
          onAll={choice.all}
          onClear={choice.clear}
          onAct={(action) => setAsked({ action, target: targetOf(selection, rows, filter, action) })}
        />
      )}
      {asked !== null && (
        <OperationDialog
          action={asked.action}
          target={asked.target}
          onClose={() => {
            setAsked(null);
            choice.clear();
          }}
          onDone={list.look}
        />
      )}
    </>
  );
}

/** What came in above: shown when it is wanted. */
function NewJobs({ waiting, onShow }: { waiting: number; onShow: () => void }) {
  return (
    <div className="pointer-events-none fixed inset-x-0 top-14 z-20 flex justify-center md:left-52">
      <Button
        look="primary"
        className="pointer-events-auto rounded-full shadow-pop"
        onClick={() => {
          onShow();
          window.scrollTo({ top: 0 });
        }}
      >
        <ArrowUp aria-hidden className="size-3.5" />
        {waiting >= PAGE_SIZE ? `${PAGE_SIZE}+ new` : `${count(waiting)} new`}
      </Button>
    </div>
  );
}

function statesOf(selection: Selection, rows: readonly Job[], { state }: Filter): readonly JobState[] {
  if (selection.isAll) return state === undefined ? JOB_STATES : [state];
  // Most of the time nothing is chosen, of however many rows.
  if (selection.keys.size === 0) return [];
  return rows.filter((job) => selection.keys.has(keyOf(job))).map((job) => job.status);
}

function actionsFor(states: readonly JobState[]): Action[] {
  return (Object.keys(ACTIONS) as Action[]).filter((action) =>
    ACTIONS[action].states.some((state) => states.includes(state)),
  );
}

/** What the server does unasked comes first: as jobs of a waiting state will start, else the latest first. */
function ordersOf(state: JobState | undefined) {
  const isWaiting = state === "SCHEDULED" || state === "PENDING" || state === "BLOCKED";
  return [
    { value: "usual", label: isWaiting ? "next to start" : "newest first" },
    ...(isWaiting ? [{ value: "newest", label: "newest first" } as const] : []),
    { value: "oldest", label: "oldest first" },
  ] as const;
}

function total(counts: Readonly<Record<JobState, number>>): number {
  return JOB_STATES.reduce((sum, state) => sum + counts[state], 0);
}

function targetOf(selection: Selection, rows: readonly Job[], filter: Filter, action: Action): Target {
  if (selection.isAll) {
    return {
      kind: "matching",
      where: toWhere(filter, serverNow()),
      words: <code className="font-mono text-xs break-all">{tokensOf(filter).map(writeToken).join(" ")}</code>,
    };
  }
  const fitting = rows.filter((job) => selection.keys.has(keyOf(job)) && ACTIONS[action].states.includes(job.status));
  return { kind: "chosen", ids: fitting.map(keyOf) };
}

/** What can be proposed: words that the server knows, and those of the jobs that are loaded. */
function useKnown(filter: Filter, order: Order, isWanted: boolean): Known {
  const client = useQueryClient();
  const words = useQuery(wordsQuery(isWanted)).data;
  return useMemo(() => {
    const loaded = isWanted ? client.getQueryData(jobsQuery(filter, order).queryKey) : undefined;
    const some = loaded?.pages.slice(0, 10).flatMap((page) => page.jobs) ?? [];
    return {
      queues: words?.queues ?? [],
      tasks: words?.tasks ?? [],
      workers: words?.workers ?? [],
      errors: unique([...(words?.errors ?? []), ...some.map((job) => job.error?.type ?? "")]),
      tags: unique([...(words?.tags ?? []), ...some.flatMap((job) => job.tags)]),
      fields: words?.fields ?? [],
    };
  }, [client, words, filter, order, isWanted]);
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values)].filter((value) => value !== "").sort();
}

function Views({ search, onShow }: { search: JobsSearch; onShow: (search: JobsSearch) => void }) {
  const [views, setViews] = useState(readViews);
  const { say } = useToasts();
  const current = views.find((view) => sameSearch(view.search, search))?.name ?? null;
  return (
    <ViewsMenu
      views={views}
      current={current}
      onOpen={(view) => onShow(view.search)}
      onKeep={(name) => {
        setViews(keepView({ name, search }));
        say(`Saved as “${name}”`);
      }}
      onDrop={(name) => setViews(dropView(name))}
    />
  );
}

function sameSearch(one: JobsSearch, other: JobsSearch): boolean {
  const text = (search: JobsSearch) => JSON.stringify(Object.entries(search).sort());
  return text(one) === text(other);
}

function Operations({ mayStop }: { mayStop: boolean }) {
  const client = useQueryClient();
  const { complain } = useToasts();
  const operations = useQuery(runningOperationsQuery);
  return (
    <RunningOperations
      operations={operations.data ?? []}
      mayStop={mayStop}
      onStop={(id) => {
        stopOperation(id)
          .then(() => client.invalidateQueries({ queryKey: runningOperationsQuery.queryKey }))
          .catch(complain);
      }}
    />
  );
}

/** Below the last row: whether there is more, and how far a search has looked. */
function ListEnd({ list, filter }: { list: LiveList; filter: Filter }) {
  if (list.error !== null && list.rows.length > 0) {
    return (
      <p role="alert" className="flex items-center gap-3 p-4 text-failed">
        {list.error.message} <Button onClick={list.retry}>Try again</Button>
      </p>
    );
  }
  if (list.isLoading) return null;
  if (filter.text !== undefined) {
    return (
      <div role="status" className="figures flex flex-wrap items-center justify-center gap-3 p-4 text-muted">
        Looked through {plural(list.examined, "record")}: {plural(list.rows.length, "match", "matches")}.
        {list.hasMore && (
          <Button isBusy={list.isLoadingMore} onClick={list.more}>
            Look further
          </Button>
        )}
      </div>
    );
  }
  return list.hasMore ? (
    <p className="p-4 text-center text-muted">{list.isLoadingMore ? "Loading more" : ""}</p>
  ) : (
    list.rows.length > 0 && (
      <p className="figures p-3 text-center text-xs text-muted">{plural(list.rows.length, "job")}, that is all</p>
    )
  );
}
