/** What the URL of this page can say. */
export interface WorkflowsSearch {
  readonly [name: string]: never;
}

export function readWorkflowsSearch(_search: Record<string, unknown>): WorkflowsSearch {
  return {};
}
