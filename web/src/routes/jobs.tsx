/** The jobs page: filter, table and bulk actions. */

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { useMemo, useRef, useState } from "react";

import { runningOperationsQuery, stopOperation, type BulkAction } from "@/api/bulk-operations";
import { statsQuery, type Stats } from "@/api/job-counts";
import { jobsQuery, type Order } from "@/api/job-list";
import { filterSuggestionsQuery } from "@/api/name-suggestions";
import { queryKeys } from "@/api/query-keys";
import { deleteView, saveView, viewsQuery } from "@/api/saved-views";
import { useHasRole, useSession } from "@/api/session";
import { tasksQuery } from "@/api/tasks";
import { BulkOperationDialog, type DialogTarget } from "@/components/bulk-operations/bulk-operation-dialog";
import { RunningOperationsList } from "@/components/bulk-operations/running-operations-list";
import { Button } from "@/components/buttons";
import { SelectField } from "@/components/form-fields";
import { actionTarget, allowedActions } from "@/components/jobs/bulk-actions-for-selection";
import { JobFilterBar } from "@/components/jobs/job-filter-bar";
import { JobListFooter } from "@/components/jobs/job-list-footer";
import { JobTable } from "@/components/jobs/job-table";
import type { RowDisplay } from "@/components/jobs/job-table-cells";
import { SavedViewsMenu } from "@/components/jobs/saved-views-menu";
import { SelectedJobsBar } from "@/components/jobs/selected-jobs-bar";
import { ShowArrivedJobsButton } from "@/components/jobs/show-arrived-jobs-button";
import { StateFilterButtons } from "@/components/jobs/state-filter-buttons";
import { EmptyState, ErrorState, LoadingState, NoMatches } from "@/components/loading-empty-error-states";
import { PageLayout } from "@/components/page-layout";
import { JOB_STATES, type JobState } from "@/lib/job-and-workflow-states";
import { toFilter, toTokens, type Filter } from "@/lib/job-filter";
import { type SuggestionSource } from "@/lib/job-filter-suggestions";
import { UNKNOWN_PARAMETERS } from "@/lib/summarize-job-arguments";
import { useKeyboardShortcuts } from "@/lib/use-keyboard-shortcuts";
import { useMutationWithToast } from "@/lib/use-mutation-with-toast";
import { useRowSelection } from "@/lib/use-row-selection";
import { useLiveJobList } from "@/live/use-live-job-list";
import { toListQuery, type JobsSearch } from "@/routes/jobs.search-params";

const route = getRouteApi("/authenticated/jobs");

export function JobsRoute() {
  const search = route.useSearch();
  const navigate = useNavigate();
  const mayAct = useHasRole("operator");
  const filterInput = useRef<HTMLInputElement>(null);
  const [isTyping, setTyping] = useState(false);
  const { queues } = useSession();
  const { filter, order } = useMemo(() => toListQuery(search, queues), [search, queues]);
  const stats = useQuery(statsQuery(filter.queue));
  const isCountable = Object.keys(filter).every((key) => key === "state" || key === "queue");
  const counts = isCountable ? (stats.data ?? null) : null;
  const suggestions = useSuggestions(filter, order, isTyping);

  function show(next: JobsSearch) {
    void navigate({ to: "/jobs", search: next });
  }

  useKeyboardShortcuts({ f: () => filterInput.current?.focus() });

  return (
    <PageLayout
      title="Jobs"
      actions={
        <>
          <SavedViews search={{ ...filter, ...(order ? { order } : {}) }} onShow={show} />
          {mayAct && (
            <Button asChild variant="primary">
              <Link to="/jobs/new">
                <Plus aria-hidden className="size-3.5" />
                New job
              </Link>
            </Button>
          )}
        </>
      }
    >
      <StateFilterButtons
        state={filter.state}
        counts={counts}
        onChange={(state) => show({ ...filter, state, order })}
      />
      <div className="flex flex-wrap items-start gap-2">
        <JobFilterBar
          tokens={toTokens(filter)}
          known={suggestions}
          inputRef={filterInput}
          onOpen={() => setTyping(true)}
          onChange={(tokens) => show({ ...toFilter(tokens), order })}
        />
        <SelectField
          label="Order"
          isLabelHidden
          className="w-36 [&_select]:h-9"
          value={order ?? "default"}
          options={orderOptions(filter.state)}
          onChange={(next) => show({ ...filter, order: next === "default" ? undefined : next })}
        />
      </div>
      <Operations mayStop={mayAct} />
      <JobList
        // Another filter is another list: a selection made in the previous one must not survive.
        key={JSON.stringify([filter, order])}
        filter={filter}
        order={order}
        counts={counts}
        onClear={() => show({})}
      />
    </PageLayout>
  );
}

function SavedViews({ search, onShow }: { search: JobsSearch; onShow: (search: JobsSearch) => void }) {
  const views = useQuery(viewsQuery).data ?? [];
  const mayChange = useHasRole("operator");
  const save = useMutationWithToast({
    run: saveView,
    successMessage: ({ name }: { name: string; search: JobsSearch }) => `Saved as “${name}”`,
    invalidates: [queryKeys.views],
  });
  const remove = useMutationWithToast({
    run: deleteView,
    successMessage: (name: string) => `“${name}” deleted`,
    invalidates: [queryKeys.views],
  });
  return (
    <SavedViewsMenu
      views={views}
      search={search}
      onOpen={(view) => onShow(view.search)}
      onSave={mayChange ? (name) => save.mutate({ name, search }) : undefined}
      onDelete={mayChange ? (name) => remove.mutate(name) : undefined}
    />
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
  const mayAct = useHasRole("operator");
  const mayDeleteAll = useHasRole("admin");
  const list = useLiveJobList(filter, order);
  const { rows } = list;
  const { selection, ...select } = useRowSelection(rows);
  const [dialog, setDialog] = useState<{ action: BulkAction; target: DialogTarget } | null>(null);
  const isFiltered = Object.keys(filter).length > 0;
  const display = useRowDisplay(filter);
  const actions = useMemo(
    () =>
      allowedActions(selection, rows, filter).filter(
        (action) => action !== "delete" || !selection.isAll || mayDeleteAll,
      ),
    [selection, rows, filter, mayDeleteAll],
  );
  useKeyboardShortcuts({ Escape: select.clear });

  function content() {
    if (list.error !== null && rows.length === 0) return <ErrorState error={list.error} onRetry={list.retry} />;
    if (list.isLoading) return <LoadingState lines={12} />;
    if (rows.length > 0) {
      return (
        <JobTable
          rows={rows}
          gone={list.gone}
          display={display}
          selection={selection}
          isSelectable={mayAct}
          onToggle={select.toggle}
          onExtend={select.extend}
          onToggleAll={select.toggleLoaded}
          onOpen={(job) => void navigate({ to: "/jobs/$id", params: { id: job.jobId } })}
          onNearEnd={list.nearEnd}
          onScroll={list.onScroll}
        />
      );
    }
    // Records that have not been searched yet may still match.
    if (isFiltered) return list.hasMore ? null : <NoMatches what="jobs" onClear={onClear} />;
    return <EmptyState title="No jobs yet">Jobs appear here as programs enqueue them.</EmptyState>;
  }

  return (
    <>
      <div className="-mx-4 md:mx-0">
        {content()}
        <JobListFooter list={list} isTextSearch={filter.text !== undefined} />
      </div>
      {list.waiting > 0 && <ShowArrivedJobsButton count={list.waiting} onShow={list.applyNew} />}
      {(selection.isAll || selection.keys.size > 0) && (
        <SelectedJobsBar
          selected={selection.keys.size}
          isAll={selection.isAll}
          matching={counts === null ? null : filter.state === undefined ? total(counts) : counts[filter.state]}
          canSelectAll={isFiltered}
          actions={actions}
          onSelectAll={select.all}
          onClear={select.clear}
          onAction={(action) => setDialog({ action, target: actionTarget(action, selection, rows, filter) })}
        />
      )}
      {dialog !== null && (
        <BulkOperationDialog
          action={dialog.action}
          target={dialog.target}
          onClose={() => {
            setDialog(null);
            select.clear();
          }}
          onDone={list.refreshVisible}
        />
      )}
    </>
  );
}

/** Indexed arguments come first in a row, and times are absolute once a time range is chosen. */
function useRowDisplay({ since, until }: Filter): RowDisplay {
  const tasks = useQuery(tasksQuery).data;
  return useMemo(() => {
    const known = new Map(tasks?.map((task) => [task.name, task]));
    return {
      hasAbsoluteTimes: since !== undefined || until !== undefined,
      parametersOf: (task) => known.get(task) ?? UNKNOWN_PARAMETERS,
    };
  }, [tasks, since, until]);
}

/** The server's default comes first: next to start for a waiting state, otherwise newest first. */
function orderOptions(state: JobState | undefined) {
  const isWaiting = state === "SCHEDULED" || state === "PENDING" || state === "BLOCKED";
  return [
    { value: "default", label: isWaiting ? "next to start" : "newest first" },
    ...(isWaiting ? [{ value: "newest", label: "newest first" } as const] : []),
    { value: "oldest", label: "oldest first" },
  ] as const;
}

function total(counts: Readonly<Record<JobState, number>>): number {
  return JOB_STATES.reduce((sum, state) => sum + counts[state], 0);
}

/** Values for the filter bar: those that the server suggests, and those of the loaded jobs. */
function useSuggestions(filter: Filter, order: Order, isEnabled: boolean): SuggestionSource {
  const client = useQueryClient();
  const known = useQuery(filterSuggestionsQuery(isEnabled)).data;
  return useMemo(() => {
    const loaded = isEnabled ? client.getQueryData(jobsQuery(filter, order).queryKey) : undefined;
    const jobs = loaded?.pages.slice(0, 10).flatMap((page) => page.jobs) ?? [];
    return {
      queues: known?.queues ?? [],
      tasks: known?.tasks ?? [],
      workers: known?.workers ?? [],
      errors: unique([...(known?.errors ?? []), ...jobs.map((job) => job.error?.type ?? "")]),
      tags: unique([...(known?.tags ?? []), ...jobs.flatMap((job) => job.tags)]),
      fields: known?.fields ?? [],
    };
  }, [client, known, filter, order, isEnabled]);
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values)].filter((value) => value !== "").sort();
}

function Operations({ mayStop }: { mayStop: boolean }) {
  const operations = useQuery(runningOperationsQuery);
  const stop = useMutationWithToast({
    run: stopOperation,
    successMessage: () => "Stopping the operation",
    invalidates: [queryKeys.operations],
  });
  return (
    <RunningOperationsList operations={operations.data ?? []} mayStop={mayStop} onStop={(id) => stop.mutate(id)} />
  );
}
