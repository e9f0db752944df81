/** The page of one workflow: state, errors, graph, timeline and steps. */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { Ban, RotateCcw } from "lucide-react";
import { lazy, Suspense, useState } from "react";

import { ApiError } from "@/api/http-client";
import { jobActions } from "@/api/job-actions";
import { queryKeys } from "@/api/query-keys";
import { useHasRole } from "@/api/session";
import { workflowActions, workflowQuery, type Workflow, type WorkflowStep } from "@/api/workflows";
import { WorkflowStateBadge } from "@/components/badges";
import { Button } from "@/components/buttons";
import { CopyButton } from "@/components/copy-button";
import { Dialog } from "@/components/dialog";
import { CheckField } from "@/components/form-fields";
import { JobLink } from "@/components/job-links";
import { EmptyState, ErrorState, LoadingState } from "@/components/loading-empty-error-states";
import { PageLayout } from "@/components/page-layout";
import { Panel } from "@/components/panel";
import { ProgressBar } from "@/components/progress-bar";
import { RelativeTime, Duration } from "@/components/relative-time-and-duration";
import { Tabs } from "@/components/tabs";
import { useToast } from "@/components/toasts";
import { StepGanttChart } from "@/components/workflow/step-gantt-chart";
import { StepList } from "@/components/workflow/step-list";
import { formatCount, formatPlural } from "@/lib/format-number";
import { toSentence } from "@/lib/format-server-message";
import { useMediaQuery } from "@/lib/use-media-query";
import type { WorkflowSearch, WorkflowView } from "@/routes/workflow.search-params";

const Graph = lazy(() => import("@/components/workflow/workflow-graph"));

/** States in which a failed step or compensation may be redriven. */
const RETRIABLE: ReadonlySet<Workflow["state"]> = new Set(["WAITING", "RUNNING", "FAILED", "PARKED"]);

export function WorkflowRoute() {
  const { id } = useParams({ from: "/authenticated/workflows/$id" });
  const query = useQuery(workflowQuery(useQueryClient(), id));
  if (query.error instanceof ApiError && query.error.status === 404) return <WorkflowNotFound id={id} />;
  if (query.data !== undefined) return <WorkflowPage workflow={query.data} />;
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

function WorkflowPage({ workflow }: { workflow: Workflow }) {
  const { id } = workflow;
  const search = useSearch({ from: "/authenticated/workflows/$id" });
  const usual = useMediaQuery("(min-width: 640px)") ? "graph" : "steps";
  const navigate = useNavigate();
  const onSearch = (changed: WorkflowSearch) =>
    void navigate({ to: "/workflows/$id", params: { id }, search: changed, replace: true });
  const mayOperate = useHasRole("operator");
  const { isBusy, act, ...cancelling } = useWorkflowActions(workflow);
  const onRetry =
    mayOperate && RETRIABLE.has(workflow.state) ? (job: string) => act(() => jobActions.redrive(job)) : undefined;
  return (
    <PageLayout
      title={workflow.name}
      beside={
        <>
          <WorkflowStateBadge state={workflow.state} />
          <span className="font-mono text-[13px] break-all text-muted">{id}</span>
          <CopyButton text={id} label="Copy ID" />
        </>
      }
      actions={
        mayOperate && (
          <>
            {workflow.actions.includes("resume") && (
              <Button variant="primary" isBusy={isBusy} onClick={() => act(() => workflowActions.resume(id))}>
                <RotateCcw aria-hidden className="size-3.5" />
                Resume
              </Button>
            )}
            {workflow.actions.includes("cancel") && (
              <Button onClick={cancelling.onOpenDialog}>
                <Ban aria-hidden className="size-3.5" />
                Cancel
              </Button>
            )}
          </>
        )
      }
    >
      <WorkflowStatus workflow={workflow} />
      <Tabs<WorkflowView>
        label="Views of the workflow"
        value={search.view ?? usual}
        onChange={(view) => onSearch({ ...search, view: view === usual ? undefined : view })}
        tabs={[
          {
            value: "graph",
            label: "Graph",
            content: (
              <Panel isFlush className="overflow-hidden">
                <Suspense fallback={<LoadingState lines={8} />}>
                  <Graph
                    workflow={workflow}
                    search={search}
                    onSearch={(changed) => onSearch({ ...search, ...changed })}
                  />
                </Suspense>
              </Panel>
            ),
          },
          {
            value: "timeline",
            label: "Timeline",
            content: (
              <Panel isFlush>
                <StepGanttChart
                  workflow={workflow}
                  isCriticalOnly={search.critical === true}
                  onCriticalOnly={(isOnly) => onSearch({ ...search, critical: isOnly || undefined })}
                />
              </Panel>
            ),
          },
          {
            value: "steps",
            label: `Steps (${formatCount(workflow.total)})`,
            content: (
              <Panel isFlush>
                <StepList workflow={workflow} onRetry={onRetry} isBusy={isBusy} />
              </Panel>
            ),
          },
        ]}
      />
      {cancelling.isDialogOpen && (
        <CancelDialog
          workflow={workflow}
          onClose={cancelling.onClose}
          isBusy={isBusy}
          error={cancelling.error}
          onCancel={(undo) => act(() => workflowActions.cancel(id, undo))}
        />
      )}
    </PageLayout>
  );
}

/** The explanation of the workflow's state, and its progress. */
function WorkflowStatus({ workflow }: { workflow: Workflow }) {
  return (
    <div className="flex flex-col gap-2 rounded-lg border bg-surface px-4 py-3">
      <div role="note" aria-label="Status explanation" className="flex flex-col gap-1.5">
        <p className="text-[15px] break-words">{toSentence(workflow.explanation)}</p>
        <FailureList workflow={workflow} />
      </div>
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1 text-xs text-muted">
        <ProgressBar
          className="w-40"
          value={workflow.total === 0 ? 0 : (workflow.done / workflow.total) * 100}
          label="Completed steps"
        />
        <span className="tabular-nums">
          {formatCount(workflow.done)} of {formatPlural(workflow.total, "step")}
        </span>
        <span>
          started <RelativeTime at={workflow.created_at} />
        </span>
        <span>
          {workflow.ended_at === null ? "for" : "took"}{" "}
          <Duration from={workflow.created_at} until={workflow.ended_at} />
        </span>
        <span>{workflow.on_failure === "undo" ? "on failure: undo" : "on failure: hold"}</span>
        {workflow.limit !== null && <span>at most {formatCount(workflow.limit)} concurrent</span>}
        {workflow.resume !== null && <span>resumes when a worker starts</span>}
      </div>
    </div>
  );
}

/** Number of errors shown; all of them are in the list of steps. */
const SHOWN_ERRORS = 3;

/** The errors of the failed steps or compensations, with links to their jobs. */
function FailureList({ workflow }: { workflow: Workflow }) {
  const failures = findFailures(workflow);
  if (failures.length === 0) return null;
  return (
    <ul aria-label="Errors" className="flex flex-col gap-1 text-[13px]">
      {failures.slice(0, SHOWN_ERRORS).map(({ jobId, name, error }) => (
        <li key={jobId} className="line-clamp-3 border-l-2 border-failed pl-2.5 break-words">
          <JobLink id={jobId} className="font-medium underline">
            {name}
          </JobLink>
          {": "}
          <span className="font-mono text-failed">{error.type || error.kind}</span> {error.message}
        </li>
      ))}
      {failures.length > SHOWN_ERRORS && (
        <li className="text-muted">and {formatCount(failures.length - SHOWN_ERRORS)} more in the list of steps</li>
      )}
    </ul>
  );
}

interface Failure {
  readonly jobId: string;
  readonly name: string;
  readonly error: NonNullable<WorkflowStep["error"]>;
}

function findFailures({ state, steps }: Workflow): readonly Failure[] {
  return steps.flatMap(({ name, jobId, outcome, error, undo }): Failure[] => {
    if (state === "PARKED" && undo?.state === "failed" && undo.error !== null)
      return [{ jobId: undo.jobId, name: `undo ${name}`, error: undo.error }];
    if (state === "FAILED" && outcome === "failed" && jobId !== null && error !== null) return [{ jobId, name, error }];
    return [];
  });
}

function useWorkflowActions(workflow: Workflow) {
  const client = useQueryClient();
  const toast = useToast();
  const [isDialogOpen, setDialogOpen] = useState(false);
  const mutation = useMutation({
    mutationFn: (act: () => Promise<string>) => act(),
    onSuccess: (message) => {
      toast.success(`${message}: ${workflow.name}`);
      setDialogOpen(false);
      void client.invalidateQueries({ queryKey: queryKeys.workflow(workflow.id) });
    },
    onError: (error) => {
      if (!isDialogOpen) toast.error(error);
    },
  });
  return {
    isBusy: mutation.isPending,
    error: mutation.error,
    act: (one: () => Promise<string>) => mutation.mutate(one),
    isDialogOpen,
    onOpenDialog: () => {
      mutation.reset();
      setDialogOpen(true);
    },
    onClose: () => setDialogOpen(false),
  };
}

interface CancelProps {
  workflow: Workflow;
  onClose: () => void;
  onCancel: (undo: boolean) => void;
  isBusy: boolean;
  error: Error | null;
}

function CancelDialog({ workflow, onClose, onCancel, isBusy, error }: CancelProps) {
  const undos = workflow.steps.filter(({ outcome, undo }) => undo !== null && outcome === "completed").length;
  // The undo of a parked workflow has already been attempted.
  const isParked = workflow.state === "PARKED";
  const [willUndo, setUndo] = useState(undos > 0 && !isParked);
  return (
    <Dialog
      isOpen
      onClose={onClose}
      title={`Cancel ${workflow.name}?`}
      description={
        isParked
          ? "The workflow ends now; steps that could not be undone stay completed."
          : "Running steps are asked to stop, and no further steps start."
      }
      actions={
        <>
          <Button onClick={onClose}>Back</Button>
          <Button variant="danger" isBusy={isBusy} onClick={() => onCancel(willUndo)}>
            {willUndo ? "Cancel and undo" : "Cancel workflow"}
          </Button>
        </>
      }
    >
      {undos > 0 && !isParked && (
        <CheckField
          label={`Undo completed steps (${formatPlural(undos, "step")})`}
          isChecked={willUndo}
          onChange={setUndo}
          hint="Compensations run in reverse order of the steps."
        />
      )}
      {error !== null && (
        <p role="alert" className="mt-2 text-failed">
          {error.message}
        </p>
      )}
    </Dialog>
  );
}

function WorkflowNotFound({ id }: { id: string }) {
  return (
    <PageLayout title={id}>
      <Panel>
        <EmptyState
          title="Workflow not found"
          action={
            <Button asChild>
              <Link to="/workflows" search={{}}>
                All workflows
              </Link>
            </Button>
          }
        >
          Finished workflows are kept for a limited time and then removed with their steps.
        </EmptyState>
      </Panel>
    </PageLayout>
  );
}
