import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { Ban, RotateCcw } from "lucide-react";
import { lazy, Suspense, useState } from "react";

import { ApiError } from "@/api/client";
import { jobActions } from "@/api/job";
import { keys } from "@/api/keys";
import { useMay } from "@/api/session";
import { workflowActions, workflowQuery, type Workflow, type WorkflowStep } from "@/api/workflows";
import { WorkflowBadge } from "@/components/badge";
import { Button } from "@/components/button";
import { CopyButton } from "@/components/copy";
import { Dialog } from "@/components/dialog";
import { CheckField } from "@/components/field";
import { JobLink } from "@/components/links";
import { Empty, Failure, Loading } from "@/components/looks";
import { Meter } from "@/components/meter";
import { Moment, Span } from "@/components/moment";
import { Page } from "@/components/page";
import { Panel } from "@/components/panel";
import { Tabs } from "@/components/tabs";
import { useToasts } from "@/components/toasts";
import { Gantt } from "@/components/workflow/gantt";
import { Steps } from "@/components/workflow/steps";
import { sentence } from "@/lib/explanation";
import { useMedia } from "@/lib/media";
import { count, plural } from "@/lib/numbers";
import type { WorkflowSearch, WorkflowView } from "@/routes/workflow.search";

const Graph = lazy(() => import("@/components/workflow/graph"));

/** States in which a failed step, or compensation, may be tried again by itself. */
const RETRIABLE: ReadonlySet<Workflow["state"]> = new Set(["WAITING", "RUNNING", "FAILED", "PARKED"]);

export function WorkflowRoute() {
  const { id } = useParams({ from: "/inside/workflows/$id" });
  const query = useQuery(workflowQuery(useQueryClient(), id));
  if (query.error instanceof ApiError && query.error.status === 404) return <Gone id={id} />;
  if (query.data !== undefined) return <WorkflowPage workflow={query.data} />;
  return (
    <Page title={id}>
      {query.error ? <Failure error={query.error} onRetry={() => void query.refetch()} /> : <Loading lines={8} />}
    </Page>
  );
}

function WorkflowPage({ workflow }: { workflow: Workflow }) {
  const { id } = workflow;
  const search = useSearch({ from: "/inside/workflows/$id" });
  const usual = useMedia("(min-width: 640px)") ? "graph" : "steps";
  const navigate = useNavigate();
  const onSearch = (changed: WorkflowSearch) =>
    void navigate({ to: "/workflows/$id", params: { id }, search: changed, replace: true });
  const mayOperate = useMay("operator");
  const { isBusy, act, ...cancelling } = useActions(workflow);
  const onRetry =
    mayOperate && RETRIABLE.has(workflow.state) ? (job: string) => act(() => jobActions.redrive(job)) : undefined;
  return (
    <Page
      title={workflow.name}
      beside={
        <>
          <WorkflowBadge state={workflow.state} />
          <span className="font-mono text-[13px] break-all text-muted">{id}</span>
          <CopyButton text={id} label="Copy the id" />
        </>
      }
      actions={
        mayOperate && (
          <>
            {workflow.actions.includes("resume") && (
              <Button look="primary" isBusy={isBusy} onClick={() => act(() => workflowActions.resume(id))}>
                <RotateCcw aria-hidden className="size-3.5" />
                Resume
              </Button>
            )}
            {workflow.actions.includes("cancel") && (
              <Button onClick={cancelling.onAsk}>
                <Ban aria-hidden className="size-3.5" />
                Cancel
              </Button>
            )}
          </>
        )
      }
    >
      <Standing workflow={workflow} />
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
                <Suspense fallback={<Loading lines={8} />}>
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
                <Gantt
                  workflow={workflow}
                  isCriticalOnly={search.critical === true}
                  onCriticalOnly={(isOnly) => onSearch({ ...search, critical: isOnly || undefined })}
                />
              </Panel>
            ),
          },
          {
            value: "steps",
            label: `Steps (${count(workflow.total)})`,
            content: (
              <Panel isFlush>
                <Steps workflow={workflow} onRetry={onRetry} isBusy={isBusy} />
              </Panel>
            ),
          },
        ]}
      />
      {cancelling.isAsked && (
        <CancelDialog
          workflow={workflow}
          onClose={cancelling.onClose}
          isBusy={isBusy}
          error={cancelling.error}
          onCancel={(undo) => act(() => workflowActions.cancel(id, undo))}
        />
      )}
    </Page>
  );
}

/** Why it is where it is, and how far it has come. */
function Standing({ workflow }: { workflow: Workflow }) {
  return (
    <div className="flex flex-col gap-2 rounded-lg border bg-surface px-4 py-3">
      <div role="note" aria-label="Why it is where it is" className="flex flex-col gap-1.5">
        <p className="text-[15px] break-words">{sentence(workflow.explanation)}</p>
        <Troubles workflow={workflow} />
      </div>
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1 text-xs text-muted">
        <Meter
          className="w-40"
          value={workflow.total === 0 ? 0 : (workflow.done / workflow.total) * 100}
          label="Steps done"
        />
        <span className="figures">
          {count(workflow.done)} of {plural(workflow.total, "step")}
        </span>
        <span>
          started <Moment at={workflow.created_at} />
        </span>
        <span>
          {workflow.ended_at === null ? "for" : "took"} <Span from={workflow.created_at} until={workflow.ended_at} />
        </span>
        <span>{workflow.on_failure === "undo" ? "undone when a step fails" : "held when a step fails"}</span>
        {workflow.limit !== null && <span>at most {count(workflow.limit)} of its name at once</span>}
        {workflow.resume !== null && <span>resumed when a worker starts</span>}
      </div>
    </div>
  );
}

/** More errors than this say nothing new; all of them are in the list of steps. */
const SHOWN_ERRORS = 3;

/** Why it cannot go on: what each failed step, or compensation, raised, and the job that says more. */
function Troubles({ workflow }: { workflow: Workflow }) {
  const troubles = troublesOf(workflow);
  if (troubles.length === 0) return null;
  return (
    <ul aria-label="What was raised" className="flex flex-col gap-1 text-[13px]">
      {troubles.slice(0, SHOWN_ERRORS).map(({ jobId, name, error }) => (
        <li key={jobId} className="line-clamp-3 border-l-2 border-failed pl-2.5 break-words">
          <JobLink id={jobId} className="font-medium underline">
            {name}
          </JobLink>
          {": "}
          <span className="font-mono text-failed">{error.type || error.kind}</span> {error.message}
        </li>
      ))}
      {troubles.length > SHOWN_ERRORS && (
        <li className="text-muted">and {count(troubles.length - SHOWN_ERRORS)} more: see the steps</li>
      )}
    </ul>
  );
}

interface Trouble {
  readonly jobId: string;
  readonly name: string;
  readonly error: NonNullable<WorkflowStep["error"]>;
}

function troublesOf({ state, steps }: Workflow): readonly Trouble[] {
  return steps.flatMap(({ name, jobId, outcome, error, undo }): Trouble[] => {
    if (state === "PARKED" && undo?.state === "failed" && undo.error !== null)
      return [{ jobId: undo.jobId, name: `undo ${name}`, error: undo.error }];
    if (state === "FAILED" && outcome === "failed" && jobId !== null && error !== null) return [{ jobId, name, error }];
    return [];
  });
}

function useActions(workflow: Workflow) {
  const client = useQueryClient();
  const { say, complain } = useToasts();
  const [isAsked, setAsked] = useState(false);
  const mutation = useMutation({
    mutationFn: (act: () => Promise<string>) => act(),
    onSuccess: (said) => {
      say(`${said}: ${workflow.name}`);
      setAsked(false);
      void client.invalidateQueries({ queryKey: keys.workflow(workflow.id) });
    },
    onError: (error) => {
      if (!isAsked) complain(error);
    },
  });
  return {
    isBusy: mutation.isPending,
    error: mutation.error,
    act: (one: () => Promise<string>) => mutation.mutate(one),
    isAsked,
    onAsk: () => {
      mutation.reset();
      setAsked(true);
    },
    onClose: () => setAsked(false),
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
  // What is being undone already can only be left as it is.
  const isParked = workflow.state === "PARKED";
  const [willUndo, setUndo] = useState(undos > 0 && !isParked);
  return (
    <Dialog
      isOpen
      onClose={onClose}
      title={`Cancel ${workflow.name}?`}
      description={
        isParked
          ? "It ends as it stands: what could not be undone stays done."
          : "Steps that run are told to stop, and no other starts."
      }
      actions={
        <>
          <Button onClick={onClose}>Keep as it is</Button>
          <Button look="danger" isBusy={isBusy} onClick={() => onCancel(willUndo)}>
            {willUndo ? "Cancel and undo" : "Cancel the workflow"}
          </Button>
        </>
      }
    >
      {undos > 0 && !isParked && (
        <CheckField
          label={`Undo what was done (${plural(undos, "step")})`}
          isChecked={willUndo}
          onChange={setUndo}
          hint="Compensations run, those of the last steps first."
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

function Gone({ id }: { id: string }) {
  return (
    <Page title={id}>
      <Panel>
        <Empty
          title="There is no such workflow"
          action={
            <Button asChild>
              <Link to="/workflows" search={{}}>
                All workflows
              </Link>
            </Button>
          }
        >
          Workflows that have ended are kept for a while, and then removed with their steps.
        </Empty>
      </Panel>
    </Page>
  );
}
