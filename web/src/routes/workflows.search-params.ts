/** Search params of the workflow list: states separated by commas, and part of the name. */

import { WORKFLOW_STATES, type WorkflowState } from "@/lib/job-and-workflow-states";

export interface WorkflowsSearch {
  readonly state?: string;
  readonly name?: string;
}

export function readWorkflowsSearch({ state, name }: Record<string, unknown>): WorkflowsSearch {
  const states = typeof state === "string" ? statesOf({ state }) : [];
  return {
    ...(states.length > 0 ? { state: states.join(",") } : {}),
    ...(typeof name === "string" && name !== "" ? { name } : {}),
  };
}

/** In the order of the filter, without duplicates. */
export function statesOf({ state = "" }: WorkflowsSearch): readonly WorkflowState[] {
  const asked = state.toUpperCase().split(",");
  return WORKFLOW_STATES.filter((known) => asked.includes(known));
}
