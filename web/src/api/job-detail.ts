/** One job: its details, history, log and related jobs. */

import { infiniteQueryOptions, queryOptions, type QueryClient } from "@tanstack/react-query";

import { unwrap, api, type Schemas } from "@/api/http-client";
import { queryKeys } from "@/api/query-keys";
import { isFinished } from "@/lib/job-and-workflow-states";
import { syncServerClock } from "@/lib/server-clock";
import type { Change } from "@/live/query-refresher";

export type Job = Schemas["JobDetail"];
export type JobAction = Job["actions"][number];
export type JobAttempt = Schemas["JobAttempt"];
export type JobError = Schemas["JobErrorDetail"];
export type HistoryEntry = Schemas["HistoryEntry"];
export type LogLine = Schemas["LogLine"];
export type RelatedJob = Schemas["RelatedJob"];

/** Splits "mail:welcome@000000002". An ID without a queue belongs to queue "default". */
export function parseJobId(id: string): { queue: string; id: string; run: string | null } {
  const [name, run] = id.split("@", 2) as [string, string | undefined];
  const colon = name.lastIndexOf(":");
  return { queue: colon < 0 ? "default" : name.slice(0, colon), id: name.slice(colon + 1), run: run ?? null };
}

/** Whether a change may concern this run. A change of many runs lists only some of them. */
function concernsRun(change: Change, job: Job): boolean {
  if (change.queue !== job.queue) return false;
  return change.runs.includes(job.run) || change.count > change.runs.length;
}

/**
 * Whether a change affects a job page. The explanation of a waiting job depends on its whole queue, so any change there
 * matters; an ID without a run means the newest run, which an enqueue may have created.
 */
export function affectsJob(change: Change, id: string, job: Job | undefined): boolean {
  if (job === undefined) return change.queue === parseJobId(id).queue;
  if (concernsRun(change, job)) return true;
  if (change.queue !== job.queue || change.verb === "log" || change.verb === "progress") return false;
  const isWaiting = !isFinished(job.status) && job.status !== "PROCESSING";
  return isWaiting || (parseJobId(id).run === null && change.verb === "enqueue");
}

/** The explanation contains durations, and workers and pauses that no event reports. */
const REFRESH_MS = 5000;
const FINISHED_REFRESH_MS = 30_000;

export function jobQuery(client: QueryClient, id: string) {
  const queryKey = queryKeys.job(id);
  return queryOptions({
    queryKey,
    queryFn: async ({ signal }): Promise<Job> => {
      const { job } = await unwrap(api.GET("/api/jobs/{job_id}", { params: { path: { job_id: id } }, signal }));
      syncServerClock(job.now);
      return job;
    },
    refetchInterval: ({ state }) =>
      state.data !== undefined && !isFinished(state.data.status) ? REFRESH_MS : FINISHED_REFRESH_MS,
    meta: { live: (change) => affectsJob(change, id, client.getQueryData<Job>(queryKey)) },
  });
}

/** Metadata of a query about one run: refreshed by the verbs that matter. */
function runMeta(client: QueryClient, id: string, matters: (verb: string) => boolean) {
  return {
    live: (change: Change) => {
      const job = client.getQueryData<Job>(queryKeys.job(id));
      return matters(change.verb) && job !== undefined && concernsRun(change, job);
    },
  };
}

export function historyQuery(client: QueryClient, id: string) {
  return queryOptions({
    queryKey: queryKeys.jobPart(id, "history"),
    queryFn: async ({ signal }): Promise<readonly HistoryEntry[]> => {
      const path = { job_id: id };
      return (await unwrap(api.GET("/api/jobs/{job_id}/history", { params: { path }, signal }))).history;
    },
    meta: runMeta(client, id, (verb) => verb !== "log" && verb !== "progress"),
  });
}

/** The log. Only new lines are fetched: lines are append-only. */
export function logsQuery(client: QueryClient, id: string) {
  const queryKey = queryKeys.jobPart(id, "logs");
  return queryOptions({
    queryKey,
    queryFn: async ({ signal }): Promise<readonly LogLine[]> => {
      const known = client.getQueryData<readonly LogLine[]>(queryKey) ?? [];
      const params = { path: { job_id: id }, query: { start: known.length } };
      const { lines } = await unwrap(api.GET("/api/jobs/{job_id}/logs", { params, signal }));
      return lines.length === 0 ? known : [...known, ...lines];
    },
    // The last log lines of an attempt may be stored after its end event.
    meta: runMeta(client, id, () => true),
  });
}

const RELATED_PAGE_SIZE = 50;

/** The dependencies or the dependents of a job, page by page. */
export function relatedQuery(id: string, side: "dependencies" | "dependents") {
  const path = { job_id: id };
  return infiniteQueryOptions({
    queryKey: queryKeys.jobPart(id, side),
    queryFn: ({ pageParam, signal }) => {
      const params = { path, query: { limit: RELATED_PAGE_SIZE, ...(pageParam ? { cursor: pageParam } : {}) } };
      return side === "dependencies"
        ? unwrap(api.GET("/api/jobs/{job_id}/dependencies", { params, signal }))
        : unwrap(api.GET("/api/jobs/{job_id}/dependents", { params, signal }));
    },
    initialPageParam: "",
    getNextPageParam: (last) => last.cursor ?? undefined,
    meta: { live: ({ verb }) => verb !== "log" && verb !== "progress" },
  });
}

/** A job by its ID, without live updates. */
export function jobByIdQuery(id: string | undefined) {
  return queryOptions({
    queryKey: queryKeys.jobById(id),
    queryFn: async ({ signal }) => {
      const path = { job_id: id ?? "" };
      return (await unwrap(api.GET("/api/jobs/{job_id}", { params: { path }, signal }))).job;
    },
    enabled: id !== undefined,
    staleTime: Infinity,
  });
}
