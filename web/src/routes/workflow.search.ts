/** What the URL of this page can say. */
export interface WorkflowSearch {
  readonly [name: string]: never;
}

export function readWorkflowSearch(_search: Record<string, unknown>): WorkflowSearch {
  return {};
}
