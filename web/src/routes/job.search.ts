/** What the URL of this page can say. */
export interface JobSearch {
  readonly [name: string]: never;
}

export function readJobSearch(_search: Record<string, unknown>): JobSearch {
  return {};
}
