/** What the URL of this page can say. */
export interface DeadSearch {
  readonly [name: string]: never;
}

export function readDeadSearch(_search: Record<string, unknown>): DeadSearch {
  return {};
}
