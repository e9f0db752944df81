/** Schedules: when their jobs come. */

import { queryOptions } from "@tanstack/react-query";

import { answer, api, type Schemas } from "@/api/client";
import { keys } from "@/api/keys";

export type Schedule = Schemas["Schedule"];

export const schedulesQuery = queryOptions({
  queryKey: keys.schedules,
  queryFn: async (): Promise<Schedule[]> => (await answer(api.GET("/api/schedules"))).schedules,
  meta: { live: ({ verb }) => verb === "enqueue" || verb.endsWith("_schedule") },
});

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
