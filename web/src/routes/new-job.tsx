import { useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { LockKeyhole } from "lucide-react";
import { useDeferredValue, useId, useRef, useState, type SyntheticEvent } from "react";

import { copiedQuery, enqueueJob, searchQuery, type NewJob, type NewJobAnswer } from "@/api/jobs";
import { useMay } from "@/api/session";
import { queueNamesQuery, tasksQuery, type TaskInfo } from "@/api/tasks";
import { Button } from "@/components/button";
import { Choice } from "@/components/choice";
import { SelectField, TextField } from "@/components/field";
import { DependencyField, type Parent } from "@/components/jobs/dependency-field";
import { SchemaForm } from "@/components/jobs/schema-form";
import { JsonEditor } from "@/components/json/editor";
import { Empty, Failure, Loading } from "@/components/looks";
import { Page } from "@/components/page";
import { Panel } from "@/components/panel";
import { filterOf, readTokens } from "@/lib/filter";
import { EMPTY_OBJECT, tryParseJson, writeJson, type Json } from "@/lib/json";
import { placeComplaints, type Complaints } from "@/lib/misplaced";
import { duration } from "@/lib/time";
import { fieldsOf } from "@/lib/schema";

const route = getRouteApi("/inside/jobs/new");

/** What the form holds, as it is typed. */
interface Draft {
  readonly task: string;
  readonly data: string;
  readonly queue: string;
  readonly priority: string;
  readonly start: "now" | "delay" | "run_at";
  readonly delay: string;
  readonly run_at: string;
  readonly id: string;
  readonly on_same_id: "update" | "ignore" | "reject";
  readonly lock: string;
  readonly tags: string;
  readonly timeout: string;
  readonly attempts: string;
  readonly expires: string;
  readonly parents: readonly Parent[];
}

const EMPTY: Draft = {
  task: "",
  data: "",
  queue: "",
  priority: "",
  start: "now",
  delay: "",
  run_at: "",
  id: "",
  on_same_id: "update",
  lock: "",
  tags: "",
  timeout: "",
  attempts: "",
  expires: "",
  parents: [],
};

const STARTS = [
  { value: "now", label: "as soon as possible" },
  { value: "delay", label: "after some seconds" },
  { value: "run_at", label: "at a time" },
] as const;
const SAME_ID = [
  { value: "update", label: "change that job" },
  { value: "ignore", label: "leave it as it is" },
  { value: "reject", label: "refuse this one" },
] as const;

const OPTIONS: ReadonlySet<string> = new Set([
  "type", "data", "queue", "priority", "delay", "run_at", "id", "on_same_id", "lock", "tags", "timeout", "attempts",
  "expires", "dependencies",
]); // prettier-ignore

export function NewJobRoute() {
  const search = route.useSearch();
  const copied = useQuery(copiedQuery(search.from));
  if (!useMay("operator")) {
    return (
      <Page title="New job">
        <Empty icon={LockKeyhole} title="You may not enqueue jobs">
          It takes the role operator.
        </Empty>
      </Page>
    );
  }
  if (search.from !== undefined && copied.data === undefined) {
    return (
      <Page title="New job">
        {copied.error ? <Failure error={copied.error} onRetry={() => void copied.refetch()} /> : <Loading />}
      </Page>
    );
  }
  const job = copied.data;
  const draft: Draft = job
    ? {
        ...EMPTY,
        task: job.type,
        data: job.data,
        queue: job.queue,
        priority: String(job.priority),
        lock: job.lock ?? "",
        tags: job.tags.join(", "),
      }
    : { ...EMPTY, task: search.task ?? "" };
  return <NewJobForm key={search.from ?? search.task ?? ""} initial={draft} copyOf={search.from} />;
}

function NewJobForm({ initial, copyOf }: { initial: Draft; copyOf: string | undefined }) {
  const client = useQueryClient();
  const known = useQuery(tasksQuery);
  const tasks = known.data ?? [];
  const [draft, setDraft] = useState(initial);
  const [isRaw, setRaw] = useState(false);
  const [complaints, setComplaints] = useState<Complaints>({});
  const [stored, setStored] = useState<NewJobAnswer | null>(null);
  const [isBusy, setBusy] = useState(false);
  /** The same submission, pressed twice or sent again after an error, has the same key and makes one job. */
  const sent = useRef({ body: "", key: "" });
  const task = tasks.find(({ name }) => name === draft.task);

  function change(part: Partial<Draft>) {
    setDraft((old) => ({ ...old, ...part }));
  }

  async function submit(event: SyntheticEvent) {
    event.preventDefault();
    if (isBusy) return;
    setBusy(true);
    setComplaints({});
    const job = bodyOf(draft);
    const body = JSON.stringify([job, draft.data]);
    if (sent.current.body !== body) sent.current = { body, key: newKey() };
    try {
      if (draft.data.trim() !== "" && tryParseJson(draft.data) === null) {
        setComplaints({ data: "This is no JSON" });
        return;
      }
      setStored(await enqueueJob(job, draft.data, sent.current.key));
      void client.invalidateQueries({ queryKey: ["names"] });
    } catch (error) {
      setComplaints(placeComplaints(error, OPTIONS));
    } finally {
      setBusy(false);
    }
  }

  if (stored !== null) {
    return (
      <Page title="New job">
        <Panel>
          <p role="status">
            {stored.is_new ? "Stored" : "There already"}:{" "}
            <Link
              to="/jobs/$id"
              params={{ id: stored.jobId }}
              className="font-mono break-all text-accent underline underline-offset-2"
            >
              {stored.jobId}
            </Link>
          </p>
          <div className="mt-4 flex flex-wrap gap-2">
            <Button asChild look="primary">
              <Link to="/jobs/$id" params={{ id: stored.jobId }}>
                Open it
              </Link>
            </Button>
            <Button
              onClick={() => {
                sent.current = { body: "", key: "" };
                setStored(null);
              }}
            >
              Another one
            </Button>
          </div>
        </Panel>
      </Page>
    );
  }

  return (
    <Page title="New job" lead={copyOf === undefined ? undefined : `A copy of ${copyOf}`}>
      {known.data === undefined && known.error && (
        <Panel isFlush>
          <Failure error={known.error} onRetry={() => void known.refetch()} />
        </Panel>
      )}
      <form onSubmit={(event) => void submit(event)} className="grid items-start gap-4 lg:grid-cols-[3fr_2fr]">
        <div className="flex min-w-0 flex-col gap-4">
          <TaskPanel draft={draft} tasks={known.data} task={task} complaints={complaints} onChange={change} />
          <DataPanel draft={draft} task={task} isRaw={isRaw} onRaw={setRaw} complaints={complaints} onChange={change} />
        </div>
        <div className="flex min-w-0 flex-col gap-4">
          <OptionsPanel draft={draft} task={task} complaints={complaints} onChange={change} />
          <Panel title="Dependencies">
            <Dependencies draft={draft} complaints={complaints} onChange={change} />
          </Panel>
          {complaints[""] !== undefined && (
            <p role="alert" className="text-failed">
              {complaints[""]}
            </p>
          )}
          <Button type="submit" look="primary" className="h-9" isBusy={isBusy} disabled={draft.task === ""}>
            Enqueue
          </Button>
        </div>
      </form>
    </Page>
  );
}

interface PartProps {
  draft: Draft;
  task: TaskInfo | undefined;
  complaints: Complaints;
  onChange: (part: Partial<Draft>) => void;
}

/** `tasks` are undefined while it is not known which there are. */
function TaskPanel({ draft, tasks, task, complaints, onChange }: PartProps & { tasks?: readonly TaskInfo[] }) {
  const listId = useId();
  const isUnknown = draft.task !== "" && tasks !== undefined && task === undefined;
  const unknown = isUnknown ? "No worker has announced it: the job waits for one." : "";
  return (
    <Panel>
      <TextField
        label="Task"
        list={listId}
        value={draft.task}
        onChange={(name) => onChange({ task: name })}
        error={complaints.type}
        hint={
          task === undefined ? unknown || "Type a part of its name." : `${task.doc || task.name} Queue ${task.queue}.`
        }
        placeholder="send_mail"
        autoComplete="off"
        spellCheck={false}
        autoFocus
        required
      />
      <datalist id={listId}>
        {tasks?.map(({ name, doc }) => (
          <option key={name} value={name}>
            {doc}
          </option>
        ))}
      </datalist>
    </Panel>
  );
}

/** As a form where the task says what it takes, and as JSON for all else: positional arguments are an array. */
function DataPanel({
  draft,
  task,
  isRaw,
  onRaw,
  complaints,
  onChange,
}: PartProps & { isRaw: boolean; onRaw: (isRaw: boolean) => void }) {
  const fields = fieldsOf(task?.json_schema ?? null);
  const value: Json | null = draft.data.trim() === "" ? EMPTY_OBJECT : named(tryParseJson(draft.data), task);
  const isForm = fields !== null && value?.kind === "object" && !isRaw;
  return (
    <Panel
      title="Arguments"
      actions={
        fields !== null && (
          <Choice
            label="How to write them"
            value={isForm ? "form" : "json"}
            options={[
              { value: "form", label: "Form" },
              { value: "json", label: "JSON" },
            ]}
            onChange={(way) => {
              if (way === "json" && value !== null) onChange({ data: writeJson(value, 2) });
              onRaw(way === "json");
            }}
          />
        )
      }
    >
      {isForm ? (
        fields.length === 0 ? (
          <p className="text-muted">It takes none.</p>
        ) : (
          <SchemaForm
            fields={fields}
            value={value}
            path="data"
            complaints={complaints}
            onChange={(changed) => onChange({ data: writeJson(changed) })}
          />
        )
      ) : (
        <JsonEditor
          label="An object of named arguments, or an array of positional ones"
          value={draft.data}
          error={firstOfData(complaints)}
          hint={value === null ? "This is no JSON yet." : undefined}
          onChange={(data) => onChange({ data })}
        />
      )}
      {isForm && complaints.data !== undefined && (
        <p role="alert" className="mt-2 text-xs text-failed">
          {complaints.data}
        </p>
      )}
    </Panel>
  );
}

/** Positional arguments by the names of their places, so that the form can show them. */
function named(value: Json | null, task: TaskInfo | undefined): Json | null {
  if (value?.kind !== "array" || task === undefined || value.items.length > task.positional.length) return value;
  return { kind: "object", entries: value.items.map((item, place) => [task.positional[place] ?? "", item]) };
}

function firstOfData(complaints: Complaints): string | null {
  const found = Object.entries(complaints).find(([path]) => path === "data" || path.startsWith("data."));
  return found === undefined ? null : found.join(": ").replace(/^data(: |\.)/, "");
}

function OptionsPanel({ draft, task, complaints, onChange }: PartProps) {
  const queuesId = useId();
  const queues = useQuery(queueNamesQuery).data ?? [];
  const text = (name: "queue" | "id" | "lock" | "tags" | "timeout" | "attempts" | "expires" | "delay") => ({
    value: draft[name],
    onChange: (value: string) => onChange({ [name]: value }),
    error: complaints[name],
    autoComplete: "off",
    spellCheck: false,
  });
  return (
    <Panel title="Options">
      <div className="grid gap-3 sm:grid-cols-2">
        <TextField label="Queue" list={queuesId} placeholder={task?.queue ?? "default"} {...text("queue")} />
        <datalist id={queuesId}>
          {queues.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        <TextField
          label="Priority, lower first"
          placeholder={String(task?.priority ?? 0)}
          hint="critical, high, medium, normal, low, or −100 to 100"
          value={draft.priority}
          onChange={(priority) => onChange({ priority })}
          error={complaints.priority}
        />
        <SelectField label="Start" value={draft.start} options={STARTS} onChange={(start) => onChange({ start })} />
        {draft.start === "delay" && <TextField label="Delay, seconds" inputMode="decimal" {...text("delay")} />}
        {draft.start === "run_at" && (
          <TextField
            label="Not before, your time"
            type="datetime-local"
            value={draft.run_at}
            onChange={(run_at) => onChange({ run_at })}
            error={complaints.run_at}
          />
        )}
        <TextField label="Id" placeholder="made up" {...text("id")} />
        {draft.id !== "" && (
          <SelectField
            label="If that id waits already"
            value={draft.on_same_id}
            options={SAME_ID}
            onChange={(on_same_id) => onChange({ on_same_id })}
          />
        )}
        <TextField label="Lock" placeholder="none" hint="No two jobs that run share one." {...text("lock")} />
        <TextField label="Tags" placeholder="none" hint="With commas between." {...text("tags")} />
        <TextField
          label="Timeout, seconds"
          placeholder={task?.timeout_ms ? duration(task.timeout_ms) : "as the task says"}
          inputMode="decimal"
          {...text("timeout")}
        />
        <TextField
          label="Attempts"
          placeholder={String(task?.attempts ?? "as the task says")}
          inputMode="numeric"
          {...text("attempts")}
        />
        <TextField
          label="Expires after, seconds"
          placeholder="never"
          hint="Not started by then, it is cancelled."
          inputMode="decimal"
          {...text("expires")}
        />
      </div>
    </Panel>
  );
}

function Dependencies({ draft, complaints, onChange }: Omit<PartProps, "task">) {
  const [typed, setTyped] = useState("");
  const wanted = useDeferredValue(typed.trim());
  const found = useQuery({ ...searchQuery(filterOf(readTokens(wanted).tokens)), enabled: wanted !== "" });
  return (
    <DependencyField
      parents={draft.parents}
      onChange={(parents) => onChange({ parents })}
      typed={typed}
      onType={setTyped}
      found={found.data ?? []}
      isLooking={found.isFetching}
      error={complaints.dependencies}
    />
  );
}

/** What is empty is not sent. What is no number is sent as it is: the server says at which field that is wrong. */
function bodyOf(draft: Draft): NewJob {
  const number = (typed: string) => {
    const value = typed.trim().replace(",", ".");
    return value === "" ? undefined : ((Number.isNaN(Number(value)) ? value : Number(value)) as number);
  };
  const tags = draft.tags.split(",").map((tag) => tag.trim());
  const at = draft.start === "run_at" && draft.run_at !== "" ? new Date(draft.run_at) : null;
  return {
    type: draft.task,
    queue: draft.queue || undefined,
    priority: number(draft.priority),
    delay: draft.start === "delay" ? number(draft.delay) : undefined,
    run_at: at?.toISOString(),
    id: draft.id || undefined,
    on_same_id: draft.id === "" ? undefined : draft.on_same_id,
    lock: draft.lock || undefined,
    tags: tags.some((tag) => tag !== "") ? tags.filter((tag) => tag !== "") : undefined,
    timeout: number(draft.timeout),
    attempts: number(draft.attempts),
    expires: number(draft.expires),
    dependencies:
      draft.parents.length === 0
        ? undefined
        : draft.parents.map((parent) => ({ ...parent, if_gone: "refused" as const })),
  };
}

/** `crypto.randomUUID` is hidden from pages over plain HTTP. */
function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
