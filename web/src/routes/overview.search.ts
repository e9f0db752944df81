/** What the URL of this page can say. */
export interface OverviewSearch {
  readonly [name: string]: never;
}

export function readOverviewSearch(_search: Record<string, unknown>): OverviewSearch {
  return {};
}
