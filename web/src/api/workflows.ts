/** Workflows: the list, one with its graph, and what can be done to one. */

import { queryOptions, type QueryClient } from "@tanstack/react-query";

import { answer, api, type Schemas } from "@/api/client";
import { keys } from "@/api/keys";
import type { WorkflowState } from "@/lib/states";
import type { Change } from "@/live/changes";

export type WorkflowInfo = Schemas["WorkflowInfo"];
export type Workflow = Schemas["Workflow"];
export type WorkflowStep = Schemas["WorkflowStep"];
export type WorkflowUndo = Schemas["WorkflowUndo"];

/** What moves no workflow on. */
const IDLE_VERBS: ReadonlySet<string> = new Set(["log", "progress", "promote", "pause", "resume"]);
const LISTED = 500;
const GROWS_OLD_MS = 10_000;

export function workflowsQuery(states: readonly WorkflowState[]) {
  return queryOptions({
    queryKey: keys.workflows({ states }),
    queryFn: async ({ signal }): Promise<readonly WorkflowInfo[]> => {
      const query = { limit: LISTED, ...(states.length > 0 ? { state: [...states] } : {}) };
      return (await answer(api.GET("/api/workflows", { params: { query }, signal }))).workflows;
    },
    meta: { live: ({ verb }) => verb === "workflow" },
  });
}

const OVER: ReadonlySet<WorkflowState> = new Set(["COMPLETED", "UNDONE", "CANCELLED"]);

export function isOver(state: WorkflowState): boolean {
  return OVER.has(state);
}

function queuesOf(workflow: Workflow): ReadonlySet<string> {
  const undos = workflow.steps.flatMap(({ undo }) => (undo ? [undo.jobId.slice(0, undo.jobId.lastIndexOf(":"))] : []));
  return new Set([...workflow.steps.map(({ queue }) => queue), ...undos]);
}

export function concernsWorkflow(change: Change, id: string, workflow: Workflow | undefined): boolean {
  if (change.verb === "workflow") return change.runs.includes(id);
  if (IDLE_VERBS.has(change.verb)) return false;
  return workflow === undefined || (!isOver(workflow.state) && queuesOf(workflow).has(change.queue));
}

export function workflowQuery(client: QueryClient, id: string) {
  const queryKey = keys.workflow(id);
  return queryOptions({
    queryKey,
    queryFn: async ({ signal }): Promise<Workflow> => {
      const path = { workflow_id: id };
      return (await answer(api.GET("/api/workflows/{workflow_id}", { params: { path }, signal }))).workflow;
    },
    // Who is limited to some queues hears of its steps alone.
    refetchInterval: ({ state: { data } }) => data !== undefined && !isOver(data.state) && GROWS_OLD_MS,
    meta: { live: (change) => concernsWorkflow(change, id, client.getQueryData<Workflow>(queryKey)) },
  });
}

export const workflowActions = {
  resume: async (id: string): Promise<string> => {
    await api.POST("/api/workflows/{workflow_id}/resume", { params: { path: { workflow_id: id } } });
    return "Resumed";
  },
  cancel: async (id: string, undo: boolean): Promise<string> => {
    await api.POST("/api/workflows/{workflow_id}/cancel", { params: { path: { workflow_id: id } }, body: { undo } });
    return undo ? "Cancelled: what was done is being undone" : "Cancelled";
  },
};
