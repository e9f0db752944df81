/** What the URL of this page can say. */
export interface JobsSearch {
  readonly [name: string]: never;
}

export function readJobsSearch(_search: Record<string, unknown>): JobsSearch {
  return {};
}
