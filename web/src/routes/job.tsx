/** The page of one job: explanation, actions, overview, log and history. */

import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useState, type ReactNode } from "react";

import { ApiError } from "@/api/http-client";
import { jobActions } from "@/api/job-actions";
import { historyQuery, jobQuery, logsQuery, parseJobId, relatedQuery, type Job, type LogLine } from "@/api/job-detail";
import { queryKeys, removalKey } from "@/api/query-keys";
import { useHasRole, useSession } from "@/api/session";
import { JobStateBadge } from "@/components/badges";
import { Button } from "@/components/buttons";
import { CopyButton } from "@/components/copy-button";
import { JobLink } from "@/components/job-links";
import { AttemptTimeline } from "@/components/job/attempt-timeline";
import { ErrorWithTraceback } from "@/components/job/error-and-traceback";
import { JobActionButtons, type JobDialog } from "@/components/job/job-action-buttons";
import {
  CancelDialog,
  DataDialog,
  DeleteDialog,
  PriorityDialog,
  RescheduleDialog,
} from "@/components/job/job-action-dialogs";
import { JobProgress } from "@/components/job/job-progress";
import { JobProperties, JobLimits } from "@/components/job/job-properties";
import { LogViewer } from "@/components/job/log-viewer";
import { hasRelations, RelatedJobsView } from "@/components/job/related-jobs";
import { StateChangeHistory } from "@/components/job/state-change-history";
import { JsonViewer } from "@/components/json/json-viewer";
import { EmptyState, ErrorState, QueryContent, LoadingState } from "@/components/loading-empty-error-states";
import { PageLayout } from "@/components/page-layout";
import { Panel } from "@/components/panel";
import { Tabs } from "@/components/tabs";
import { useToast } from "@/components/toasts";
import { toSentence } from "@/lib/format-server-message";
import { splitByNames } from "@/lib/split-text-at-names";
import { useLive } from "@/live/live-provider";
import type { JobView } from "@/routes/job.search-params";

export function JobRoute() {
  const { id } = useParams({ from: "/authenticated/jobs/$id" });
  const client = useQueryClient();
  const isPaused = useLive().status === "paused";
  const query = useQuery({ ...jobQuery(client, id), ...(isPaused ? { refetchInterval: false } : {}) });
  if (query.error instanceof ApiError && query.error.status === 404) return <JobNotFound id={id} />;
  if (query.data === undefined) {
    return (
      <PageLayout title={id}>
        {query.error ? (
          <ErrorState error={query.error} onRetry={() => void query.refetch()} />
        ) : (
          <LoadingState lines={8} />
        )}
      </PageLayout>
    );
  }
  // Another run resets the page: no typed text or open dialog is carried over.
  return <JobPage key={query.data.run} id={id} job={query.data} />;
}

function JobPage({ id, job }: { id: string; job: Job }) {
  const search = useSearch({ from: "/authenticated/jobs/$id" });
  const navigate = useNavigate();
  const client = useQueryClient();
  const logs = useQuery(logsQuery(client, id));
  const lines = logs.data ?? [];
  const { dialog, ...actions } = useJobActions(id, job);
  return (
    <PageLayout
      title={job.jobId}
      beside={
        <>
          <CopyButton text={job.jobId} label="Copy ID" />
          <JobStateBadge state={job.status} />
        </>
      }
      lead={<span className="font-mono text-[13px]">{job.type}</span>}
      actions={<JobActionButtons job={job} {...actions} />}
    >
      <p
        aria-label="Status explanation"
        role="note"
        className="rounded-lg border bg-surface px-4 py-3 text-[15px] break-words"
      >
        {splitByNames(toSentence(job.explanation), mentionedJobs(job)).map((piece, place) =>
          piece.isName ? <JobLink key={place} id={piece.text} className="link font-medium" /> : piece.text,
        )}
      </p>
      <Tabs<JobView>
        label="Views of the job"
        value={search.view ?? "overview"}
        onChange={(view) =>
          void navigate({
            to: "/jobs/$id",
            params: { id },
            search: view === "overview" ? {} : { view },
            replace: true,
          })
        }
        tabs={[
          { value: "overview", label: "Overview", content: <JobOverview id={id} job={job} lines={lines} /> },
          {
            value: "log",
            label: lines.length > 0 ? `Log (${lines.length})` : "Log",
            content: (
              <Panel isFlush>
                <JobLog job={job} lines={lines} className="h-[65vh]" />
              </Panel>
            ),
          },
          { value: "history", label: "History", content: <HistoryTab id={id} /> },
        ]}
      />
      {dialog}
    </PageLayout>
  );
}

/** The jobs that its explanation may mention. */
function mentionedJobs(job: Job): readonly string[] {
  return [...(job.obstacle?.jobs ?? []), job.lock_detail?.holder ?? "", job.handled_by ?? ""];
}

function JobLog({ job, lines, className }: { job: Job; lines: readonly LogLine[]; className?: string }) {
  return (
    <LogViewer
      lines={lines}
      isRunning={job.status === "PROCESSING"}
      fileName={`${job.jobId}.log`}
      className={className}
    />
  );
}

function HistoryTab({ id }: { id: string }) {
  const query = useQuery(historyQuery(useQueryClient(), id));
  return (
    <Panel isFlush>
      <QueryContent query={query}>{(entries) => <StateChangeHistory entries={entries} />}</QueryContent>
    </Panel>
  );
}

function JobOverview({ id, job, lines }: { id: string; job: Job; lines: readonly LogLine[] }) {
  const isRunning = job.status === "PROCESSING";
  const traceUrl = useSession().trace_url;
  return (
    <div className="grid items-start gap-4 lg:grid-cols-[minmax(0,1fr)_22rem]">
      <div className="flex min-w-0 flex-col gap-4">
        {job.progress !== null && job.status !== "COMPLETED" && (
          <Panel title="Progress" isFlush>
            <JobProgress progress={job.progress} isRunning={isRunning} />
          </Panel>
        )}
        {job.error !== null && (
          <Panel title={job.status === "FAILED" ? "Error" : "Latest error"}>
            <ErrorWithTraceback error={job.error} />
          </Panel>
        )}
        <Panel title="Timeline" isFlush>
          <AttemptTimeline job={job} lines={lines} />
        </Panel>
        <div className={job.result === null ? "" : "grid gap-4 xl:grid-cols-2"}>
          <Panel title="Data" className="min-w-0">
            <JsonViewer source={job.data} label="Data" fileName={`${job.jobId}-data.json`} />
          </Panel>
          {job.result !== null && (
            <Panel title="Result" className="min-w-0">
              <JsonViewer source={job.result} label="Result" fileName={`${job.jobId}-result.json`} />
            </Panel>
          )}
        </div>
        {(lines.length > 0 || isRunning) && (
          <Panel title="Log" isFlush>
            <JobLog job={job} lines={lines} className="max-h-80" />
          </Panel>
        )}
      </div>
      <div className="flex min-w-0 flex-col gap-4">
        <RelatedJobsPanel id={id} job={job} />
        <Panel title="Properties">
          <JobProperties job={job} traceUrl={traceUrl} />
        </Panel>
        <Panel title="Limits">
          <JobLimits job={job} />
        </Panel>
      </div>
    </div>
  );
}

function useRelatedJobs(id: string, side: "dependencies" | "dependents", isWanted: boolean) {
  const query = useInfiniteQuery({ ...relatedQuery(id, side), enabled: isWanted });
  return {
    jobs: query.data?.pages.flatMap((page) => page.jobs) ?? [],
    hasMore: query.hasNextPage,
    onMore: () => void query.fetchNextPage(),
  };
}

function RelatedJobsPanel({ id, job }: { id: string; job: Job }) {
  const { run } = parseJobId(id);
  // If the URL names a run, the ID may have a newer one.
  const newest = useQuery({ ...jobQuery(useQueryClient(), job.jobId), enabled: run !== null });
  const related = {
    job,
    before: useRelatedJobs(id, "dependencies", job.dependencies.length > 0),
    after: useRelatedJobs(id, "dependents", job.status !== "COMPLETED"),
    newestRun: newest.data !== undefined && newest.data.run !== job.run ? newest.data.run : null,
  };
  if (!hasRelations(related)) return null;
  return (
    <Panel title="Related jobs">
      <RelatedJobsView {...related} />
    </Panel>
  );
}

/** The actions and their dialogs. All actions apply to this run, also if a newer one exists. */
function useJobActions(id: string, job: Job) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const toast = useToast();
  const [openDialog, setOpenDialog] = useState<JobDialog | null>(null);
  const mayOperate = useHasRole("operator");
  const run = `${job.jobId}@${job.run}`;
  const mutation = useMutation({
    mutationFn: (act: () => Promise<string>) => act(),
    onSuccess: (message) => {
      toast.success(`${message}: ${job.jobId}`);
      setOpenDialog(null);
      void client.invalidateQueries({ queryKey: queryKeys.job(id) });
    },
    onError: (error) => {
      if (openDialog === null) toast.error(error);
    },
  });
  const removal = useMutation({
    mutationKey: removalKey(queryKeys.job(id)),
    mutationFn: () => jobActions.remove(run),
    onSuccess: async (message) => {
      toast.success(`${message}: ${job.jobId}`);
      await navigate({ to: "/jobs", search: {} });
    },
  });
  const close = () => {
    setOpenDialog(null);
    mutation.reset();
    removal.reset();
  };
  const asking = { job, onClose: close, isBusy: mutation.isPending, error: mutation.error };
  const act = (one: () => Promise<string>) => mutation.mutate(one);
  const dialogs: Record<JobDialog, () => ReactNode> = {
    cancel: () => <CancelDialog {...asking} onCancel={(reason) => act(() => jobActions.cancel(run, reason))} />,
    delete: () => (
      <DeleteDialog
        {...asking}
        isBusy={removal.isPending}
        error={removal.error}
        onDelete={() => {
          removal.mutate();
        }}
      />
    ),
    edit: () => {
      const willRedrive = job.actions.includes("redrive");
      const send = willRedrive ? jobActions.redriveWithData : jobActions.replaceData;
      return <DataDialog {...asking} willRedrive={willRedrive} onData={(data) => act(() => send(run, data))} />;
    },
    reschedule: () => <RescheduleDialog {...asking} onChange={(change) => act(() => jobActions.update(run, change))} />,
    priority: () => <PriorityDialog {...asking} onChange={(change) => act(() => jobActions.update(run, change))} />,
  };
  return {
    mayOperate,
    isBusy: mutation.isPending,
    onRedrive: () => act(() => jobActions.redrive(run)),
    onRunNow: () => act(() => jobActions.update(run, { delay: 0 })),
    onOpenDialog: (dialog: JobDialog) => {
      mutation.reset();
      setOpenDialog(dialog);
    },
    dialog: openDialog === null ? null : dialogs[openDialog](),
  };
}

function JobNotFound({ id }: { id: string }) {
  const { queue, id: name, run } = parseJobId(id);
  return (
    <PageLayout title={id}>
      <Panel>
        <EmptyState
          title={run === null ? "Job not found" : "Run not found"}
          action={
            <>
              <Button asChild>
                <Link to="/jobs" search={{ text: name }}>
                  Search for {name.length > 30 ? `${name.slice(0, 30)}…` : name}
                </Link>
              </Button>
              <Button asChild>
                <Link to="/jobs" search={{ queue }}>
                  Jobs in {queue}
                </Link>
              </Button>
            </>
          }
        >
          Finished jobs are removed after the retention time of their task (<code className="font-mono">keep</code>), or
          the job was deleted. IDs belong to a queue; this one was searched in{" "}
          <span className="font-mono">{queue}</span>.
        </EmptyState>
      </Panel>
    </PageLayout>
  );
}
