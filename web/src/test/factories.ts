/** Test data: a job in each state, and other API resources. Every factory takes the fields that matter to the test. */

import type { Finding } from "@/api/finding-acknowledgement";
import type { Operation } from "@/api/bulk-operations";
import type { JobAttempt } from "@/api/job-detail";
import type { Job } from "@/api/job-list";
import type { Scaling, ScalingDecision } from "@/api/scaling";
import type { Schedule } from "@/api/schedules";
import type { TaskInfo } from "@/api/tasks";
import type { WorkflowStep } from "@/api/workflows";

/** The origin of `at`: times are seconds after it. */
export const START = Date.parse("2026-01-01T00:00:00Z");

export function at(seconds: number): string {
  return new Date(START + seconds * 1000).toISOString();
}

const JOB: Job = {
  jobId: "mail:welcome-7",
  run: "000000001",
  status: "PENDING",
  type: "send_mail",
  queue: "mail",
  data: '{"to":"ada@example.com"}',
  is_data_cut: false,
  progress: null,
  priority: 0,
  lock: null,
  tags: [],
  dependencies: [],
  workflow: null,
  attempt: 0,
  failures: 0,
  stalls: 0,
  crashes: 0,
  snoozes: 0,
  handbacks: 0,
  enqueued_at: at(0),
  due_at: null,
  claimed_at: null,
  ended_at: null,
  lease_until: null,
  worker: null,
  reason: null,
  error: null,
};

const RUNNING: Partial<Job> = { attempt: 1, claimed_at: at(1), worker: "web-1" };

function jobIn(status: Job["status"], usual: Partial<Job> = {}) {
  return (fields: Partial<Job> = {}): Job => ({ ...JOB, status, ...usual, ...fields });
}

/** `aJob.processing({ queue: "reports" })`. */
export const aJob = {
  scheduled: jobIn("SCHEDULED", { due_at: at(60) }),
  blocked: jobIn("BLOCKED", { dependencies: ["mail:first"] }),
  pending: jobIn("PENDING"),
  processing: jobIn("PROCESSING", { ...RUNNING, lease_until: at(15) }),
  completed: jobIn("COMPLETED", { ...RUNNING, ended_at: at(2) }),
  failed: jobIn("FAILED", {
    ...RUNNING,
    failures: 1,
    ended_at: at(2),
    error: { kind: "error", type: "OSError", message: "the disk is full" },
  }),
  cancelled: jobIn("CANCELLED", { ended_at: at(2), reason: "by request" }),
};

/** An attempt between two times in seconds; one that has not ended is running. */
export function anAttempt(
  attempt: number,
  from: number,
  until: number | null,
  outcome: JobAttempt["outcome"] = until === null ? "running" : "completed",
): JobAttempt {
  const note = outcome === "failed" ? "ValueError: no" : null;
  return { attempt, worker: "w", started_at: at(from), ended_at: until === null ? null : at(until), outcome, note };
}

/** A step that has made these attempts; it ended as the last of them did. */
export function aStep(fields: Partial<WorkflowStep> & Pick<WorkflowStep, "name">): WorkflowStep {
  const last = fields.executions?.at(-1);
  const hasFailed = last?.outcome === "failed";
  return {
    index: 0,
    type: fields.name,
    queue: "orders",
    jobId: `orders:${fields.name}`,
    after: [],
    outcome: hasFailed ? "failed" : "completed",
    status: hasFailed ? "FAILED" : "COMPLETED",
    attempts: fields.executions?.length ?? 0,
    items: null,
    items_done: null,
    enqueued_at: at(0),
    started_at: last?.started_at ?? null,
    ended_at: last?.ended_at ?? null,
    executions: [],
    error: null,
    bad_items: [],
    actions: [],
    undo: null,
    ...fields,
  };
}

/** A slow queue. */
export function aFinding(fields: Partial<Finding> = {}): Finding {
  return {
    key: "slow_queue:mail",
    kind: "slow_queue",
    level: "warn",
    text: "mail 30 × slower than usual",
    detail: "send_mail takes 3.5 s on average",
    count: 1,
    queue: "mail",
    task: null,
    job: null,
    worker: null,
    schedule: null,
    names: [],
    value: 3500,
    usual: 125,
    since: null,
    acknowledged: null,
    ...fields,
  };
}

export function anOperation(fields: Partial<Operation> = {}): Operation {
  return {
    id: "operation-1",
    action: "cancel",
    by: null,
    outcome: null,
    where: {},
    chosen: null,
    state: "COMPLETED",
    is_dry_run: false,
    per_second: null,
    expected: 100,
    matched: 0,
    done: 0,
    failed: 0,
    failures: [],
    created_at: at(0),
    ended_at: at(1),
    ...fields,
  };
}

export function aSchedule(fields: Partial<Schedule> = {}): Schedule {
  return {
    id: "bills:monthly",
    name: "monthly",
    queue: "bills",
    rule: { type: "every", interval: 3600 },
    words: "every hour",
    type: "bill",
    data: "{}",
    is_data_cut: false,
    misfire: "once",
    overlap: "queue",
    version: 1,
    is_declared: false,
    is_orphaned: false,
    is_paused: false,
    next_runs: [],
    last_run: null,
    last_job: null,
    fired: 0,
    dropped: 0,
    skipped: 0,
    ...fields,
  };
}

export function aTask(fields: Partial<TaskInfo> = {}): TaskInfo {
  return {
    name: "send_mail",
    queue: "mail",
    doc: "Sends a mail.",
    run_in: "loop",
    priority: 0,
    attempts: 5,
    timeout_ms: 60_000,
    max_stalls: 3,
    at_most_once: false,
    positional: [],
    index: [],
    json_schema: null,
    ...fields,
  };
}

export function aScalingDecision(fields: Partial<ScalingDecision> = {}): ScalingDecision {
  return {
    id: "1-0",
    at: at(0),
    wanted: 2,
    needed: 2,
    running: 2,
    booting: 0,
    draining: 0,
    backlog: 0,
    high: 0,
    oldest_wait_ms: null,
    reasons: ["2 workers do the work of the target wait."],
    launched: [],
    drained: [],
    terminated: [],
    is_hold: false,
    is_dry_run: false,
    is_paused: false,
    ...fields,
  };
}

export function aScalingState(fields: Partial<Scaling> = {}): Scaling {
  const load = {
    backlog: 0,
    processing: 0,
    oldest_wait_ms: null,
    arrivals_per_second: 0,
    services_per_second: 0,
    due_in_1m: 0,
    due_in_5m: 0,
    due_in_15m: 0,
    workers: 2,
    slots: 20,
    busy: 0,
  };
  return {
    total: { ...load, idle_workers: 2, busy_workers: 0 },
    queues: [],
    planner: { id: "planner-a-1", host: "a", pid: 7, version: "0.1.0", provider: "ec2", queues: ["mail"] },
    standby: [],
    settings: {
      policy: "drain-time",
      min_workers: 0,
      max_workers: 10,
      target_wait_ms: 60_000,
      interval_ms: 5000,
      is_dry_run: false,
      is_paused: false,
      changed: [],
    },
    latest: aScalingDecision(),
    decisions: [],
    cursor: null,
    actions: ["change", "dry_run"],
    ...fields,
  };
}
