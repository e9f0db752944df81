/** One thing done to many jobs, to all that match or to those that were chosen. The server does it, also when this page is closed. */

import { queryOptions } from "@tanstack/react-query";

import { answer, api, type Schemas } from "@/api/client";
import { keys } from "@/api/keys";
import { withText } from "@/lib/json";

export type Operation = Schemas["Operation"];
export type Action = Operation["action"];
/** Values of declared fields are JSON, as a text. */
export type Where = Omit<Schemas["OperationWhere"], "fields"> & { readonly fields?: string };

/** Which jobs: all that match, or those that were chosen. */
export type About = { readonly where: Where } | { readonly jobs: string[] };

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

export async function startOperation(action: Action, about: About, how: How, isDryRun: boolean): Promise<Operation> {
  const body = { action, dry_run: isDryRun, reason: "", ...how };
  const bodySerializer = () =>
    "jobs" in about ? JSON.stringify({ ...body, ...about }) : withText(body, "where", written(about.where));
  return (await answer(api.POST("/api/operations", { body, bodySerializer }))).operation;
}

function written({ fields, ...where }: Where): string {
  return fields === undefined ? JSON.stringify(where) : withText(where, "fields", fields);
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
