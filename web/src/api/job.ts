/** One job: all that is known of it, and what can be done to it. */

import { infiniteQueryOptions, queryOptions, type QueryClient } from "@tanstack/react-query";

import { answer, api, type Schemas } from "@/api/client";
import { keys } from "@/api/keys";
import { withText } from "@/lib/json";
import { learnServerTime } from "@/lib/now";
import { isFinished } from "@/lib/states";
import type { Change } from "@/live/changes";

export type Job = Schemas["JobDetail"];
export type JobAction = Job["actions"][number];
export type JobAttempt = Schemas["JobAttempt"];
export type JobError = Schemas["JobErrorDetail"];
export type HistoryEntry = Schemas["HistoryEntry"];
export type LogLine = Schemas["LogLine"];
export type RelatedJob = Schemas["RelatedJob"];

/** "mail:welcome@000000002" in its parts. A bare id is one of queue "default". */
export function partsOf(id: string): { queue: string; id: string; run: string | null } {
  const [name, run] = id.split("@", 2) as [string, string | undefined];
  const colon = name.lastIndexOf(":");
  return { queue: colon < 0 ? "default" : name.slice(0, colon), id: name.slice(colon + 1), run: run ?? null };
}

/** Whether a change is about this run. Of many at once only some are named: then it may be. */
function isAbout(change: Change, job: Job): boolean {
  if (change.queue !== job.queue) return false;
  return change.runs.includes(job.run) || change.count > change.runs.length;
}

/**
 * Whether a change makes what is shown of a job old. What waits is told why by the queue it waits in, so that any change
 * there may matter; and an id without a run means its newest one, which an enqueue may have made.
 */
export function concernsJob(change: Change, id: string, job: Job | undefined): boolean {
  if (job === undefined) return change.queue === partsOf(id).queue;
  if (isAbout(change, job)) return true;
  if (change.queue !== job.queue || change.verb === "log" || change.verb === "progress") return false;
  const isWaiting = !isFinished(job.status) && job.status !== "PROCESSING";
  return isWaiting || (partsOf(id).run === null && change.verb === "enqueue");
}

/** The explanation speaks of spans of time, and of workers and pauses that no event tells of. */
const GROWS_OLD_MS = 5000;
const ENDED_GROWS_OLD_MS = 30_000;

export function jobQuery(client: QueryClient, id: string) {
  const queryKey = keys.job(id);
  return queryOptions({
    queryKey,
    queryFn: async ({ signal }): Promise<Job> => {
      const { job } = await answer(api.GET("/api/jobs/{job_id}", { params: { path: { job_id: id } }, signal }));
      learnServerTime(job.now);
      return job;
    },
    refetchInterval: ({ state }) =>
      state.data !== undefined && !isFinished(state.data.status) ? GROWS_OLD_MS : ENDED_GROWS_OLD_MS,
    meta: { live: (change) => concernsJob(change, id, client.getQueryData<Job>(queryKey)) },
  });
}

/** What belongs to one run, read again when the run changes by one of the verbs that matter, or by any. */
function partMeta(client: QueryClient, id: string, matters: (verb: string) => boolean) {
  return {
    live: (change: Change) => {
      const job = client.getQueryData<Job>(keys.job(id));
      return matters(change.verb) && job !== undefined && isAbout(change, job);
    },
  };
}

export function historyQuery(client: QueryClient, id: string) {
  return queryOptions({
    queryKey: keys.jobPart(id, "history"),
    queryFn: async ({ signal }): Promise<readonly HistoryEntry[]> => {
      const path = { job_id: id };
      return (await answer(api.GET("/api/jobs/{job_id}/history", { params: { path }, signal }))).history;
    },
    meta: partMeta(client, id, (verb) => verb !== "log" && verb !== "progress"),
  });
}

/** The whole log, read on from where it was read to: lines are only ever added. */
export function logsQuery(client: QueryClient, id: string) {
  const queryKey = keys.jobPart(id, "logs");
  return queryOptions({
    queryKey,
    queryFn: async ({ signal }): Promise<readonly LogLine[]> => {
      const known = client.getQueryData<readonly LogLine[]>(queryKey) ?? [];
      const params = { path: { job_id: id }, query: { start: known.length } };
      const { lines } = await answer(api.GET("/api/jobs/{job_id}/logs", { params, signal }));
      return lines.length === 0 ? known : [...known, ...lines];
    },
    // The last lines of an attempt are told of before its end, but may be written behind it.
    meta: partMeta(client, id, () => true),
  });
}

const RELATED_AT_ONCE = 50;

/** The jobs that it comes after, or those that wait for it, some at a time. */
export function relatedQuery(id: string, side: "dependencies" | "dependents") {
  const path = { job_id: id };
  return infiniteQueryOptions({
    queryKey: keys.jobPart(id, side),
    queryFn: ({ pageParam, signal }) => {
      const params = { path, query: { limit: RELATED_AT_ONCE, ...(pageParam ? { cursor: pageParam } : {}) } };
      return side === "dependencies"
        ? answer(api.GET("/api/jobs/{job_id}/dependencies", { params, signal }))
        : answer(api.GET("/api/jobs/{job_id}/dependents", { params, signal }));
    },
    initialPageParam: "",
    getNextPageParam: (last) => last.cursor ?? undefined,
    meta: { live: ({ verb }) => verb !== "log" && verb !== "progress" },
  });
}

export type JobChange = Pick<Schemas["JobChange"], "priority" | "delay" | "run_at">;

function dataBody(data: string) {
  return { body: {}, bodySerializer: () => withText({}, "data", data) };
}

/** What can be done to a job; each says what was done. */
export const jobActions = {
  redrive: async (id: string): Promise<string> => {
    await api.POST("/api/jobs/{job_id}/redrive", { params: { path: { job_id: id } } });
    return "Redriven";
  },
  redriveWith: async (id: string, data: string): Promise<string> => {
    await api.POST("/api/jobs/{job_id}/redrive", { params: { path: { job_id: id } }, ...dataBody(data) });
    return "Redriven with the new data";
  },
  replaceData: async (id: string, data: string): Promise<string> => {
    await api.PATCH("/api/jobs/{job_id}", { params: { path: { job_id: id } }, ...dataBody(data) });
    return "Changed";
  },
  cancel: async (id: string, reason: string): Promise<string> => {
    await api.POST("/api/jobs/{job_id}/cancel", { params: { path: { job_id: id } }, body: { reason } });
    return "Cancelled";
  },
  update: async (id: string, change: JobChange): Promise<string> => {
    await api.PATCH("/api/jobs/{job_id}", { params: { path: { job_id: id } }, body: change });
    return "Changed";
  },
  remove: async (id: string): Promise<string> => {
    await api.DELETE("/api/jobs/{job_id}", { params: { path: { job_id: id } } });
    return "Deleted";
  },
};
