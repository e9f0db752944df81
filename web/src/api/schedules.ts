/** Schedules: queries, forecast and actions. */

import { queryOptions } from "@tanstack/react-query";

import { unwrap, api, type Schemas } from "@/api/http-client";
import { queryKeys } from "@/api/query-keys";
import { withRawMember } from "@/lib/lossless-json";
import { toRule, type Rule, type ScheduleDraft } from "@/lib/schedule-draft";

export type Schedule = Schemas["Schedule"];
export type ScheduleRun = Schemas["ScheduleRun"];

export const schedulesQuery = queryOptions({
  queryKey: queryKeys.schedules,
  queryFn: async (): Promise<Schedule[]> => (await unwrap(api.GET("/api/schedules"))).schedules,
  meta: { live: ({ verb }) => verb === "schedule" },
});

export type Forecast = Schemas["ForecastResponse"];

/** Jobs expected in each hour of the next week. Invalidated with the schedules. */
export const forecastQuery = queryOptions({
  queryKey: queryKeys.forecast,
  queryFn: () => unwrap(api.GET("/api/schedules/forecast")),
});

/** Number of recent runs shown. */
const RECENT_RUNS = 5;

/** Events that change no run. */
const IDLE_VERBS = /^(log|progress)$|_schedule$/;

/** Recent runs of a schedule. They change with the jobs of its queue. */
export function scheduleRunsQuery({ id, queue }: Schedule) {
  return queryOptions({
    queryKey: queryKeys.scheduleRuns(id),
    queryFn: async ({ signal }): Promise<readonly ScheduleRun[]> => {
      const params = { path: { schedule_id: id }, query: { limit: RECENT_RUNS } };
      return (await unwrap(api.GET("/api/schedules/{schedule_id}/runs", { params, signal }))).runs;
    },
    meta: { live: (change) => change.queue === queue && !IDLE_VERBS.test(change.verb) },
  });
}

function pathParams(id: string) {
  return { params: { path: { schedule_id: id } } };
}

export function pauseSchedule(id: string) {
  return unwrap(api.POST("/api/schedules/{schedule_id}/pause", pathParams(id)));
}

export function resumeSchedule(id: string) {
  return unwrap(api.POST("/api/schedules/{schedule_id}/resume", pathParams(id)));
}

export function runSchedule(id: string) {
  return unwrap(api.POST("/api/schedules/{schedule_id}/run", pathParams(id)));
}

export function removeSchedule(id: string) {
  return unwrap(api.DELETE("/api/schedules/{schedule_id}", pathParams(id)));
}

export type SchedulePreview = Schemas["SchedulePreviewResponse"];

/** Description and next runs of a rule. Nothing is stored. */
export function previewQuery(rule: Rule) {
  return queryOptions({
    queryKey: queryKeys.schedulePreview(rule),
    queryFn: () => unwrap(api.POST("/api/schedules/preview", { body: { rule, count: 5 } })),
    staleTime: 30_000,
  });
}

/** A request body with raw JSON data, so that large numbers keep their digits; undefined leaves the data unchanged. */
function withRawData<B extends object>(body: B, data: string | undefined) {
  return {
    body,
    bodySerializer: () => (data === undefined ? JSON.stringify(body) : withRawMember(body, "data", data)),
  };
}

export function putSchedule(draft: ScheduleDraft, data: string | undefined) {
  const { name, type, misfire, overlap } = draft;
  const body = { rule: toRule(draft), type, misfire, overlap, version: 1 };
  return unwrap(api.PUT("/api/schedules/{schedule_id}", { ...pathParams(name.trim()), ...withRawData(body, data) }));
}

export function changeSchedule(id: string, draft: ScheduleDraft, data: string | undefined) {
  const { misfire, overlap } = draft;
  const body = { rule: toRule(draft), misfire, overlap };
  return unwrap(api.PATCH("/api/schedules/{schedule_id}", { ...pathParams(id), ...withRawData(body, data) }));
}
