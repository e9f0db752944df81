/** The state of the new-job form, and its mapping to and from the API. */

import type { NewJob } from "@/api/enqueue-job";
import type { Job } from "@/api/job-list";
import type { TaskInfo } from "@/api/tasks";
import type { FieldErrors } from "@/lib/form-field-errors";
import type { Json } from "@/lib/lossless-json";

export interface Dependency {
  readonly job: string;
  readonly may_fail: boolean;
}

/** The values as typed. */
export interface NewJobDraft {
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
  readonly dependencies: readonly Dependency[];
}

const EMPTY_DRAFT: NewJobDraft = {
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
  dependencies: [],
};

/** Fields of the request that the form can show an error at. */
export const FORM_FIELDS: ReadonlySet<string> = new Set([
  "type", "data", "queue", "priority", "delay", "run_at", "id", "on_same_id", "lock", "tags", "timeout", "attempts",
  "expires", "dependencies",
]); // prettier-ignore

export function draftForTask(task: string): NewJobDraft {
  return { ...EMPTY_DRAFT, task };
}

/** A draft that enqueues a copy of a job. */
export function draftFromJob(job: Pick<Job, "type" | "data" | "queue" | "priority" | "lock" | "tags">): NewJobDraft {
  return {
    ...EMPTY_DRAFT,
    task: job.type,
    data: job.data,
    queue: job.queue,
    priority: String(job.priority),
    lock: job.lock ?? "",
    tags: job.tags.join(", "),
  };
}

/** The request, without the data. Empty fields are left out; a text that is not a number is sent for the server to reject. */
export function toNewJob(draft: NewJobDraft): NewJob {
  const tags = draft.tags
    .split(",")
    .map((tag) => tag.trim())
    .filter((tag) => tag !== "");
  const runAt = draft.start === "run_at" && draft.run_at !== "" ? new Date(draft.run_at) : null;
  return {
    type: draft.task,
    queue: draft.queue || undefined,
    priority: toNumber(draft.priority),
    delay: draft.start === "delay" ? toNumber(draft.delay) : undefined,
    run_at: runAt?.toISOString(),
    id: draft.id || undefined,
    on_same_id: draft.id === "" ? undefined : draft.on_same_id,
    lock: draft.lock || undefined,
    tags: tags.length > 0 ? tags : undefined,
    timeout: toNumber(draft.timeout),
    attempts: toNumber(draft.attempts),
    expires: toNumber(draft.expires),
    dependencies:
      draft.dependencies.length === 0
        ? undefined
        : draft.dependencies.map((dependency) => ({ ...dependency, if_gone: "refused" as const })),
  };
}

function toNumber(typed: string): number | undefined {
  const value = typed.trim().replace(",", ".");
  return value === "" ? undefined : ((Number.isNaN(Number(value)) ? value : Number(value)) as number);
}

/** Positional arguments under the names of their parameters, so that the form can show them. */
export function toNamedArguments(value: Json | null, task: TaskInfo | undefined): Json | null {
  if (value?.kind !== "array" || task === undefined || value.items.length > task.positional.length) return value;
  return { kind: "object", entries: value.items.map((item, index) => [task.positional[index] ?? "", item]) };
}

/** The first error of the arguments, for the JSON editor, which has no fields. */
export function firstDataError(errors: FieldErrors): string | null {
  const found = Object.entries(errors).find(([path]) => path === "data" || path.startsWith("data."));
  return found === undefined ? null : found.join(": ").replace(/^data(: |\.)/, "");
}

/** `crypto.randomUUID` is not available to pages over plain HTTP. */
export function newIdempotencyKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
