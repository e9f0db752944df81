/** What the URL of a workflow's page can say: which view is shown. */

export type WorkflowView = "graph" | "timeline" | "steps";

export interface WorkflowSearch {
  /** Else the graph, or the steps where a graph would be too small to read. */
  readonly view?: WorkflowView;
}

export function readWorkflowSearch({ view }: Record<string, unknown>): WorkflowSearch {
  return view === "graph" || view === "timeline" || view === "steps" ? { view } : {};
}
