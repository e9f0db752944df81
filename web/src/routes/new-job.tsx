/** The page that enqueues a job. */

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { LockKeyhole } from "lucide-react";
import { useDeferredValue, useRef, useState, type SyntheticEvent } from "react";

import { enqueueJob, type NewJobResponse } from "@/api/enqueue-job";
import { jobByIdQuery } from "@/api/job-detail";
import { jobSearchQuery } from "@/api/job-list";
import { queueNamesQuery } from "@/api/name-suggestions";
import { queryKeys } from "@/api/query-keys";
import { useHasRole } from "@/api/session";
import { tasksQuery } from "@/api/tasks";
import { Button } from "@/components/buttons";
import { EmptyState, ErrorState, LoadingState } from "@/components/loading-empty-error-states";
import { ArgumentsPanel } from "@/components/new-job/arguments-panel";
import { DependencyPicker } from "@/components/new-job/dependency-picker";
import { JobOptionsPanel } from "@/components/new-job/job-options-panel";
import { TaskSelectPanel } from "@/components/new-job/task-select-panel";
import { PageLayout } from "@/components/page-layout";
import { Panel } from "@/components/panel";
import { fieldErrors, type FieldErrors } from "@/lib/form-field-errors";
import { parseFilter, toFilter } from "@/lib/job-filter";
import { tryParseJson } from "@/lib/lossless-json";
import {
  draftForTask,
  draftFromJob,
  FORM_FIELDS,
  newIdempotencyKey,
  toNewJob,
  type Dependency,
  type NewJobDraft,
} from "@/lib/new-job-draft";

const route = getRouteApi("/authenticated/jobs/new");

export function NewJobRoute() {
  const search = route.useSearch();
  const copied = useQuery(jobByIdQuery(search.from));
  if (!useHasRole("operator")) {
    return (
      <PageLayout title="New job">
        <EmptyState icon={LockKeyhole} title="You cannot enqueue jobs">
          Requires the operator role.
        </EmptyState>
      </PageLayout>
    );
  }
  if (search.from !== undefined && copied.data === undefined) {
    return (
      <PageLayout title="New job">
        {copied.error ? <ErrorState error={copied.error} onRetry={() => void copied.refetch()} /> : <LoadingState />}
      </PageLayout>
    );
  }
  const draft = copied.data === undefined ? draftForTask(search.task ?? "") : draftFromJob(copied.data);
  return <NewJobForm key={search.from ?? search.task ?? ""} initial={draft} copyOf={search.from} />;
}

function NewJobForm({ initial, copyOf }: { initial: NewJobDraft; copyOf: string | undefined }) {
  const [draft, setDraft] = useState(initial);
  const { errors, stored, isBusy, submit, reset } = useEnqueue(draft);
  const tasks = useQuery(tasksQuery);
  const queues = useQuery(queueNamesQuery);
  const task = tasks.data?.find(({ name }) => name === draft.task);
  const change = (part: Partial<NewJobDraft>) => setDraft((old) => ({ ...old, ...part }));
  if (stored !== null) return <Stored job={stored} onAnother={reset} />;
  return (
    <PageLayout title="New job" lead={copyOf === undefined ? undefined : `A copy of ${copyOf}`}>
      {tasks.data === undefined && tasks.error && (
        <Panel isFlush>
          <ErrorState error={tasks.error} onRetry={() => void tasks.refetch()} />
        </Panel>
      )}
      <form onSubmit={(event) => void submit(event)} className="grid items-start gap-4 lg:grid-cols-[3fr_2fr]">
        <div className="flex min-w-0 flex-col gap-4">
          <TaskSelectPanel
            value={draft.task}
            onChange={(name) => change({ task: name })}
            error={errors.type}
            task={task}
            tasks={tasks.data}
          />
          <ArgumentsPanel task={task} data={draft.data} errors={errors} onChange={(data) => change({ data })} />
        </div>
        <div className="flex min-w-0 flex-col gap-4">
          <JobOptionsPanel draft={draft} task={task} queues={queues.data ?? []} errors={errors} onChange={change} />
          <Panel title="Dependencies">
            <Dependencies
              dependencies={draft.dependencies}
              error={errors.dependencies}
              onChange={(dependencies) => change({ dependencies })}
            />
          </Panel>
          {errors[""] !== undefined && (
            <p role="alert" className="text-failed">
              {errors[""]}
            </p>
          )}
          <Button type="submit" variant="primary" className="h-9" isBusy={isBusy} disabled={draft.task === ""}>
            Enqueue
          </Button>
        </div>
      </form>
    </PageLayout>
  );
}

/** Sends the draft. A draft that is submitted twice, or again after an error, keeps its key and makes one job. */
function useEnqueue(draft: NewJobDraft) {
  const client = useQueryClient();
  const [errors, setErrors] = useState<FieldErrors>({});
  const [stored, setStored] = useState<NewJobResponse | null>(null);
  const [isBusy, setBusy] = useState(false);
  const submitted = useRef({ body: "", key: "" });

  async function submit(event: SyntheticEvent) {
    event.preventDefault();
    if (isBusy) return;
    if (draft.data.trim() !== "" && tryParseJson(draft.data) === null) {
      setErrors({ data: "Not valid JSON" });
      return;
    }
    setBusy(true);
    setErrors({});
    const job = toNewJob(draft);
    const body = JSON.stringify([job, draft.data]);
    if (submitted.current.body !== body) submitted.current = { body, key: newIdempotencyKey() };
    try {
      setStored(await enqueueJob(job, draft.data, submitted.current.key));
      void client.invalidateQueries({ queryKey: queryKeys.allSuggestions });
    } catch (error) {
      setErrors(fieldErrors(error, FORM_FIELDS));
    } finally {
      setBusy(false);
    }
  }

  function reset() {
    submitted.current = { body: "", key: "" };
    setStored(null);
  }

  return { errors, stored, isBusy, submit, reset };
}

function Stored({ job, onAnother }: { job: NewJobResponse; onAnother: () => void }) {
  return (
    <PageLayout title="New job">
      <Panel>
        <p role="status">
          {job.is_new ? "Enqueued" : "Already exists"}:{" "}
          <Link
            to="/jobs/$id"
            params={{ id: job.jobId }}
            className="font-mono break-all text-accent underline underline-offset-2"
          >
            {job.jobId}
          </Link>
        </p>
        <div className="mt-4 flex flex-wrap gap-2">
          <Button asChild variant="primary">
            <Link to="/jobs/$id" params={{ id: job.jobId }}>
              Open job
            </Link>
          </Button>
          <Button onClick={onAnother}>Enqueue another</Button>
        </div>
      </Panel>
    </PageLayout>
  );
}

interface DependenciesProps {
  dependencies: readonly Dependency[];
  error: string | undefined;
  onChange: (dependencies: readonly Dependency[]) => void;
}

function Dependencies({ dependencies, error, onChange }: DependenciesProps) {
  const [typed, setTyped] = useState("");
  const wanted = useDeferredValue(typed.trim());
  const found = useQuery({ ...jobSearchQuery(toFilter(parseFilter(wanted).tokens)), enabled: wanted !== "" });
  return (
    <DependencyPicker
      dependencies={dependencies}
      onChange={onChange}
      typed={typed}
      onType={setTyped}
      found={found.data ?? []}
      isSearching={found.isFetching}
      error={error}
    />
  );
}
