/** What the URL of a workflow's page can say: which view is shown. */

export type WorkflowView = "graph" | "timeline" | "steps";

export interface WorkflowSearch {
  readonly view?: Exclude<WorkflowView, "graph">;
}

export function readWorkflowSearch({ view }: Record<string, unknown>): WorkflowSearch {
  return view === "timeline" || view === "steps" ? { view } : {};
}
