/** Schedules: when their jobs come. */

import { queryOptions } from "@tanstack/react-query";

import { answer, api, type Schemas } from "@/api/client";
import { keys } from "@/api/keys";
import { withText } from "@/lib/json";
import type { TypedRule } from "@/lib/rule";

export type Schedule = Schemas["Schedule"];
export type ScheduleRun = Schemas["ScheduleRun"];

export const schedulesQuery = queryOptions({
  queryKey: keys.schedules,
  queryFn: async (): Promise<Schedule[]> => (await answer(api.GET("/api/schedules"))).schedules,
  meta: { live: ({ verb }) => verb === "schedule" },
});

export type Ahead = Schemas["AheadAnswer"];

/** What each hour of the next week brings: runs of schedules, and scheduled jobs. Read again with the schedules. */
export const aheadQuery = queryOptions({
  queryKey: [...keys.schedules, "ahead"],
  queryFn: () => answer(api.GET("/api/schedules/ahead")),
});

/** So many are shown. */
const RUNS = 5;

/** What changes no run; and the schedule itself may be gone. */
const IDLE_VERBS = /^(log|progress)$|_schedule$/;

/** Its latest runs. They come and go with the jobs of its queue. */
export function scheduleRunsQuery({ id, queue }: Schedule) {
  return queryOptions({
    // Not below the schedules: one that was removed is not asked for its runs.
    queryKey: ["schedule-runs", id],
    queryFn: async ({ signal }): Promise<readonly ScheduleRun[]> => {
      const params = { path: { schedule_id: id }, query: { limit: RUNS } };
      return (await answer(api.GET("/api/schedules/{schedule_id}/runs", { params, signal }))).runs;
    },
    meta: { live: (change) => change.queue === queue && !IDLE_VERBS.test(change.verb) },
  });
}

function at(id: string) {
  return { params: { path: { schedule_id: id } } };
}

export function pauseSchedule(id: string) {
  return answer(api.POST("/api/schedules/{schedule_id}/pause", at(id)));
}

export function resumeSchedule(id: string) {
  return answer(api.POST("/api/schedules/{schedule_id}/resume", at(id)));
}

export function runSchedule(id: string) {
  return answer(api.POST("/api/schedules/{schedule_id}/run", at(id)));
}

export function removeSchedule(id: string) {
  return answer(api.DELETE("/api/schedules/{schedule_id}", at(id)));
}

export type SchedulePreview = Schemas["SchedulePreviewAnswer"];
export type Rule = Schemas["CronRule"] | Schemas["EveryRule"];

/** A schedule as it is being written. */
export interface Draft extends TypedRule {
  readonly name: string;
  readonly type: string;
  /** What it counts from; null: 1970. */
  readonly anchor: string | null;
  readonly data: string;
  readonly misfire: Schedule["misfire"];
  readonly overlap: Schedule["overlap"];
}

export function draftOf(schedule: Schedule | null, zone: string): Draft {
  const rule = schedule?.rule ?? {};
  const said = (name: string, otherwise: string) =>
    typeof rule[name] === "string" || typeof rule[name] === "number" ? String(rule[name]) : otherwise;
  return {
    name: schedule?.name ?? "",
    type: schedule?.type ?? "",
    kind: rule.type === "every" ? "every" : "cron",
    cron: said("expression", "0 9 * * 1-5"),
    tz: said("tz", zone),
    every: said("interval", "3600"),
    anchor: said("anchor", "") || null,
    data: schedule?.data ?? "{}",
    misfire: schedule?.misfire ?? "once",
    overlap: schedule?.overlap ?? "queue",
  };
}

export function ruleOf({ kind, cron, tz, every, anchor }: Draft): Rule {
  return kind === "cron" ? { cron, tz } : { every: Number(every), anchor };
}

/** What a rule means. Nothing is stored. */
export function previewQuery(rule: Rule) {
  return queryOptions({
    queryKey: ["schedule-preview", rule],
    queryFn: () => answer(api.POST("/api/schedules/preview", { body: { rule, count: 5 } })),
    staleTime: 30_000,
  });
}

/** Data is JSON, with every digit; where it is to stay as it is, undefined. */
function bodyOf<B extends object>(body: B, data: string | undefined) {
  return { body, bodySerializer: () => (data === undefined ? JSON.stringify(body) : withText(body, "data", data)) };
}

export function putSchedule(draft: Draft, data: string | undefined) {
  const { name, type, misfire, overlap } = draft;
  const body = { rule: ruleOf(draft), type, misfire, overlap, version: 1 };
  return answer(api.PUT("/api/schedules/{schedule_id}", { ...at(name.trim()), ...bodyOf(body, data) }));
}

export function changeSchedule(id: string, draft: Draft, data: string | undefined) {
  const { misfire, overlap } = draft;
  const body = { rule: ruleOf(draft), misfire, overlap };
  return answer(api.PATCH("/api/schedules/{schedule_id}", { ...at(id), ...bodyOf(body, data) }));
}
