/** What the URL of this page can say. */
export interface LocksSearch {
  readonly [name: string]: never;
}

export function readLocksSearch(_search: Record<string, unknown>): LocksSearch {
  return {};
}
