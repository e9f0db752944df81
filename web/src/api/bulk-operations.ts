/** Bulk operations on all matching or on selected jobs. They run on the server, also after this page is closed. */

import { queryOptions } from "@tanstack/react-query";

import { unwrap, api, type Schemas } from "@/api/http-client";
import { queryKeys } from "@/api/query-keys";
import { withRawMember } from "@/lib/lossless-json";

export type Operation = Schemas["Operation"];
export type BulkAction = Operation["action"];
/** Values of declared fields are JSON, as a text. */
export type OperationFilter = Omit<Schemas["OperationWhere"], "fields"> & { readonly fields?: string };

/** All matching jobs, or the selected ones. */
export type OperationTarget = { readonly where: OperationFilter } | { readonly jobs: string[] };

/** Options of a bulk operation. */
export interface OperationOptions {
  readonly priority?: number;
  /** Seconds from now. */
  readonly delay?: number;
  readonly per_second?: number;
  readonly reason?: string;
}

/** No event reports the progress of an operation. */
const POLL_MS = 400;

export function isRunning({ state }: Pick<Operation, "state">): boolean {
  return state === "RUNNING" || state === "STOPPING";
}

export async function startOperation(
  action: BulkAction,
  about: OperationTarget,
  how: OperationOptions,
  isDryRun: boolean,
): Promise<Operation> {
  const body = { action, dry_run: isDryRun, reason: "", ...how };
  const bodySerializer = () =>
    "jobs" in about
      ? JSON.stringify({ ...body, ...about })
      : withRawMember(body, "where", serializeFilter(about.where));
  return (await unwrap(api.POST("/api/operations", { body, bodySerializer }))).operation;
}

function serializeFilter({ fields, ...where }: OperationFilter): string {
  return fields === undefined ? JSON.stringify(where) : withRawMember(where, "fields", fields);
}

export async function stopOperation(id: string): Promise<Operation> {
  const path = { operation_id: id };
  return (await unwrap(api.POST("/api/operations/{operation_id}/cancel", { params: { path } }))).operation;
}

/** Progress of an operation, polled until it has ended. */
export function operationQuery(id: string | null) {
  return queryOptions({
    queryKey: queryKeys.operation(id ?? ""),
    queryFn: async ({ signal }): Promise<Operation> => {
      const path = { operation_id: id ?? "" };
      return (await unwrap(api.GET("/api/operations/{operation_id}", { params: { path }, signal }))).operation;
    },
    enabled: id !== null,
    refetchInterval: ({ state: { data } }) => (data === undefined || isRunning(data) ? POLL_MS : false),
  });
}

const OPERATIONS_POLL_MS = 2000;

/** The operations of all users with their outcomes, newest first. */
export const operationsQuery = queryOptions({
  queryKey: queryKeys.allOperations,
  queryFn: async ({ signal }): Promise<readonly Operation[]> => {
    const { operations } = await unwrap(api.GET("/api/operations", { params: { query: { limit: 100 } }, signal }));
    return operations.filter(({ is_dry_run }) => !is_dry_run);
  },
  refetchInterval: OPERATIONS_POLL_MS,
});

/** All running operations of all users. */
export const runningOperationsQuery = queryOptions({
  queryKey: queryKeys.operations,
  queryFn: async ({ signal }): Promise<readonly Operation[]> => {
    const { operations } = await unwrap(api.GET("/api/operations", { params: { query: { limit: 20 } }, signal }));
    return operations.filter((one) => isRunning(one) && !one.is_dry_run);
  },
  refetchInterval: ({ state: { data } }) => ((data?.length ?? 0) > 0 ? POLL_MS : 10_000),
});
