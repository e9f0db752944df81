/** Names of workflows and schedules, for the palette. */

import { queryOptions } from "@tanstack/react-query";

import { answer, api } from "@/api/client";

const LATEST = 100;

export const overviewNames = queryOptions({
  queryKey: ["names", "others"],
  queryFn: async ({ signal }): Promise<{ workflows: readonly string[]; schedules: readonly string[] }> => {
    const [flows, schedules] = await Promise.all([
      answer(api.GET("/api/workflows", { params: { query: { limit: LATEST } }, signal })),
      answer(api.GET("/api/schedules", { signal })),
    ]);
    return {
      workflows: flows.workflows.map(({ id }) => id),
      schedules: schedules.schedules.map(({ name }) => name),
    };
  },
  staleTime: 5000,
});
