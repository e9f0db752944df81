/** One thing done to many jobs: by the server to all that match, or from here to those that were chosen. */

import { queryOptions } from "@tanstack/react-query";

import { answer, api, type Schemas } from "@/api/client";
import { keys } from "@/api/keys";

export type Operation = Schemas["Operation"];
export type Action = Operation["action"];
export type Where = Schemas["OperationWhere"];

/** How it is to be done. */
export interface How {
  readonly priority?: number;
  /** Seconds from now. */
  readonly delay?: number;
  readonly per_second?: number;
  readonly reason?: string;
}

/** No event tells how far an operation is. */
const LOOK_MS = 400;

export function isRunning({ state }: Pick<Operation, "state">): boolean {
  return state === "RUNNING" || state === "STOPPING";
}

export async function startOperation(action: Action, where: Where, how: How, isDryRun: boolean): Promise<Operation> {
  const body = { action, where, dry_run: isDryRun, reason: "", ...how };
  return (await answer(api.POST("/api/operations", { body }))).operation;
}

export async function stopOperation(id: string): Promise<Operation> {
  const path = { operation_id: id };
  return (await answer(api.POST("/api/operations/{operation_id}/cancel", { params: { path } }))).operation;
}

/** How far it has come, until it has ended. */
export function operationQuery(id: string | null) {
  return queryOptions({
    queryKey: keys.operation(id ?? ""),
    queryFn: async ({ signal }): Promise<Operation> => {
      const path = { operation_id: id ?? "" };
      return (await answer(api.GET("/api/operations/{operation_id}", { params: { path }, signal }))).operation;
    },
    enabled: id !== null,
    refetchInterval: ({ state: { data } }) => (data === undefined || isRunning(data) ? LOOK_MS : false),
  });
}

/** Those that go on now, by whomever they were started. */
export const runningOperationsQuery = queryOptions({
  queryKey: keys.operations,
  queryFn: async ({ signal }): Promise<readonly Operation[]> => {
    const { operations } = await answer(api.GET("/api/operations", { params: { query: { limit: 20 } }, signal }));
    return operations.filter((one) => isRunning(one) && !one.is_dry_run);
  },
  refetchInterval: ({ state: { data } }) => ((data?.length ?? 0) > 0 ? LOOK_MS : 10_000),
});

/** One job. */
export async function doToJob(action: Action, id: string, { priority, delay, reason = "" }: How): Promise<void> {
  const params = { path: { job_id: id } };
  switch (action) {
    case "cancel":
      await api.POST("/api/jobs/{job_id}/cancel", { params, body: { reason, only_waiting: false } });
      return;
    case "delete":
      await api.DELETE("/api/jobs/{job_id}", { params });
      return;
    case "redrive":
      await api.POST("/api/jobs/{job_id}/redrive", { params });
      return;
    case "update":
      await api.PATCH("/api/jobs/{job_id}", { params, body: { priority, delay } });
  }
}
