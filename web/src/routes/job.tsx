import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useState, type ReactNode } from "react";

import { ApiError } from "@/api/client";
import {
  historyQuery,
  jobActions,
  jobQuery,
  logsQuery,
  partsOf,
  relatedQuery,
  type Job,
  type LogLine,
} from "@/api/job";
import { keys, removalOf } from "@/api/keys";
import { useMay, useSession } from "@/api/session";
import { StateBadge } from "@/components/badge";
import { Button } from "@/components/button";
import { CopyButton } from "@/components/copy";
import { JobActions, type JobDialog } from "@/components/job/actions";
import { Attempts } from "@/components/job/attempts";
import { CancelDialog, DataDialog, DeleteDialog, PriorityDialog, RescheduleDialog } from "@/components/job/dialogs";
import { ErrorReport } from "@/components/job/error-report";
import { JobLink } from "@/components/links";
import { JobFacts, JobLimits } from "@/components/job/facts";
import { History } from "@/components/job/history";
import { LogView } from "@/components/job/log-view";
import { Progress } from "@/components/job/progress";
import { hasRelations, Relations } from "@/components/job/relations";
import { JsonViewer } from "@/components/json/viewer";
import { Empty, Failure, Loaded, Loading } from "@/components/looks";
import { Page } from "@/components/page";
import { Panel } from "@/components/panel";
import { Tabs } from "@/components/tabs";
import { useToasts } from "@/components/toasts";
import { sentence, splitBy } from "@/lib/explanation";
import { useLive } from "@/live/live";
import type { JobView } from "@/routes/job.search";

export function JobRoute() {
  const { id } = useParams({ from: "/inside/jobs/$id" });
  const client = useQueryClient();
  const isPaused = useLive().status === "paused";
  const query = useQuery({ ...jobQuery(client, id), ...(isPaused ? { refetchInterval: false } : {}) });
  if (query.error instanceof ApiError && query.error.status === 404) return <Gone id={id} />;
  if (query.data === undefined) {
    return (
      <Page title={id}>
        {query.error ? <Failure error={query.error} onRetry={() => void query.refetch()} /> : <Loading lines={8} />}
      </Page>
    );
  }
  // Another run is another job to the page: nothing that was typed or opened is carried over.
  return <JobPage key={query.data.run} id={id} job={query.data} />;
}

function JobPage({ id, job }: { id: string; job: Job }) {
  const search = useSearch({ from: "/inside/jobs/$id" });
  const navigate = useNavigate();
  const client = useQueryClient();
  const logs = useQuery(logsQuery(client, id));
  const lines = logs.data ?? [];
  const { dialog, ...actions } = useActions(id, job);
  return (
    <Page
      title={job.jobId}
      beside={
        <>
          <CopyButton text={job.jobId} label="Copy the id" />
          <StateBadge state={job.status} />
        </>
      }
      lead={<span className="font-mono text-[13px]">{job.type}</span>}
      actions={<JobActions job={job} {...actions} />}
    >
      <p
        aria-label="Why it is where it is"
        role="note"
        className="rounded-lg border bg-surface px-4 py-3 text-[15px] break-words"
      >
        {splitBy(sentence(job.explanation), namedIn(job)).map((piece, place) =>
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
          { value: "overview", label: "Overview", content: <Overview id={id} job={job} lines={lines} /> },
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
    </Page>
  );
}

/** The jobs that its explanation may speak of. */
function namedIn(job: Job): readonly string[] {
  return [...(job.obstacle?.jobs ?? []), job.lock_detail?.holder ?? "", job.handled_by ?? ""];
}

function JobLog({ job, lines, className }: { job: Job; lines: readonly LogLine[]; className?: string }) {
  return (
    <LogView
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
      <Loaded query={query}>{(entries) => <History entries={entries} />}</Loaded>
    </Panel>
  );
}

function Overview({ id, job, lines }: { id: string; job: Job; lines: readonly LogLine[] }) {
  const isRunning = job.status === "PROCESSING";
  const traceUrl = useSession().trace_url;
  return (
    <div className="grid items-start gap-4 lg:grid-cols-[minmax(0,1fr)_22rem]">
      <div className="flex min-w-0 flex-col gap-4">
        {job.progress_detail !== null && job.status !== "COMPLETED" && (
          <Panel title="Progress" isFlush>
            <Progress progress={job.progress_detail} isRunning={isRunning} />
          </Panel>
        )}
        {job.error !== null && (
          <Panel title={job.status === "FAILED" ? "Error" : "Latest error"}>
            <ErrorReport error={job.error} />
          </Panel>
        )}
        <Panel title="Timeline" isFlush>
          <Attempts job={job} />
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
        <RelationsPanel id={id} job={job} />
        <Panel title="Facts">
          <JobFacts job={job} traceUrl={traceUrl} />
        </Panel>
        <Panel title="Limits">
          <JobLimits job={job} />
        </Panel>
      </div>
    </div>
  );
}

function useRelated(id: string, side: "dependencies" | "dependents", isWanted: boolean) {
  const query = useInfiniteQuery({ ...relatedQuery(id, side), enabled: isWanted });
  return {
    jobs: query.data?.pages.flatMap((page) => page.jobs) ?? [],
    hasMore: query.hasNextPage,
    onMore: () => void query.fetchNextPage(),
  };
}

function RelationsPanel({ id, job }: { id: string; job: Job }) {
  const { run } = partsOf(id);
  // Where the address names a run, its id may have a newer one.
  const newest = useQuery({ ...jobQuery(useQueryClient(), job.jobId), enabled: run !== null });
  const related = {
    job,
    before: useRelated(id, "dependencies", job.dependencies.length > 0),
    after: useRelated(id, "dependents", job.status !== "COMPLETED"),
    newestRun: newest.data !== undefined && newest.data.run !== job.run ? newest.data.run : null,
  };
  if (!hasRelations(related)) return null;
  return (
    <Panel title="Relations">
      <Relations {...related} />
    </Panel>
  );
}

/** What can be done to the job, and the dialog that is open. Everything is done to this run, whatever comes after it. */
function useActions(id: string, job: Job) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const { say, complain } = useToasts();
  const [asked, setAsked] = useState<JobDialog | null>(null);
  const mayOperate = useMay("operator");
  const run = `${job.jobId}@${job.run}`;
  const mutation = useMutation({
    mutationFn: (act: () => Promise<string>) => act(),
    onSuccess: (said) => {
      say(`${said}: ${job.jobId}`);
      setAsked(null);
      void client.invalidateQueries({ queryKey: keys.job(id) });
    },
    onError: (error) => {
      if (asked === null) complain(error);
    },
  });
  const removal = useMutation({
    mutationKey: removalOf(keys.job(id)),
    mutationFn: () => jobActions.remove(run),
    onSuccess: async (said) => {
      say(`${said}: ${job.jobId}`);
      await navigate({ to: "/jobs", search: {} });
    },
  });
  const close = () => {
    setAsked(null);
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
      const send = willRedrive ? jobActions.redriveWith : jobActions.replaceData;
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
    onAsk: (dialog: JobDialog) => {
      mutation.reset();
      setAsked(dialog);
    },
    dialog: asked === null ? null : dialogs[asked](),
  };
}

function Gone({ id }: { id: string }) {
  const { queue, id: name, run } = partsOf(id);
  return (
    <Page title={id}>
      <Panel>
        <Empty
          title={run === null ? "There is no such job" : "There is no such run"}
          action={
            <>
              <Button asChild>
                <Link to="/jobs" search={{ text: name }}>
                  Look for {name.length > 30 ? `${name.slice(0, 30)}…` : name}
                </Link>
              </Button>
              <Button asChild>
                <Link to="/jobs" search={{ queue }}>
                  Jobs of {queue}
                </Link>
              </Button>
            </>
          }
        >
          Finished jobs are kept for a while, as the task’s <code className="font-mono">keep</code> says, and then
          removed; or somebody deleted it. An id belongs to a queue: this one was looked for in{" "}
          <span className="font-mono">{queue}</span>.
        </Empty>
      </Panel>
    </Page>
  );
}
