/** Workflows: list, details and actions. */

import { queryOptions, type QueryClient } from "@tanstack/react-query";

import { unwrap, api, type Schemas } from "@/api/http-client";
import { queryKeys } from "@/api/query-keys";
import type { WorkflowState } from "@/lib/job-and-workflow-states";
import type { Change } from "@/live/query-refresher";

export type WorkflowInfo = Schemas["WorkflowInfo"];
export type Workflow = Schemas["Workflow"];
export type WorkflowStep = Schemas["WorkflowStep"];
export type WorkflowUndo = Schemas["WorkflowUndo"];

/** Events that do not advance a workflow. */
const IDLE_VERBS: ReadonlySet<string> = new Set(["log", "progress", "promote", "pause", "resume"]);
const MAX_LISTED = 500;
const REFRESH_MS = 10_000;

export function workflowsQuery(states: readonly WorkflowState[]) {
  return queryOptions({
    queryKey: queryKeys.workflows({ states }),
    queryFn: async ({ signal }): Promise<readonly WorkflowInfo[]> => {
      const query = { limit: MAX_LISTED, ...(states.length > 0 ? { state: [...states] } : {}) };
      return (await unwrap(api.GET("/api/workflows", { params: { query }, signal }))).workflows;
    },
    meta: { live: ({ verb }) => verb === "workflow" },
  });
}

const FINISHED_STATES: ReadonlySet<WorkflowState> = new Set(["COMPLETED", "UNDONE", "CANCELLED"]);

export function isFinishedWorkflow(state: WorkflowState): boolean {
  return FINISHED_STATES.has(state);
}

function queuesOf(workflow: Workflow): ReadonlySet<string> {
  const undos = workflow.steps.flatMap(({ undo }) => (undo ? [undo.jobId.slice(0, undo.jobId.lastIndexOf(":"))] : []));
  return new Set([...workflow.steps.map(({ queue }) => queue), ...undos]);
}

export function affectsWorkflow(change: Change, id: string, workflow: Workflow | undefined): boolean {
  if (change.verb === "workflow") return change.runs.includes(id);
  if (IDLE_VERBS.has(change.verb)) return false;
  return workflow === undefined || (!isFinishedWorkflow(workflow.state) && queuesOf(workflow).has(change.queue));
}

export function workflowQuery(client: QueryClient, id: string) {
  const queryKey = queryKeys.workflow(id);
  return queryOptions({
    queryKey,
    queryFn: async ({ signal }): Promise<Workflow> => {
      const path = { workflow_id: id };
      return (await unwrap(api.GET("/api/workflows/{workflow_id}", { params: { path }, signal }))).workflow;
    },
    // A token that is limited to some queues gets events for the steps only.
    refetchInterval: ({ state: { data } }) => data !== undefined && !isFinishedWorkflow(data.state) && REFRESH_MS,
    meta: { live: (change) => affectsWorkflow(change, id, client.getQueryData<Workflow>(queryKey)) },
  });
}

export const workflowActions = {
  resume: async (id: string): Promise<string> => {
    await api.POST("/api/workflows/{workflow_id}/resume", { params: { path: { workflow_id: id } } });
    return "Resumed";
  },
  cancel: async (id: string, undo: boolean): Promise<string> => {
    await api.POST("/api/workflows/{workflow_id}/cancel", { params: { path: { workflow_id: id } }, body: { undo } });
    return undo ? "Cancelled; completed steps are being undone" : "Cancelled";
  },
};
