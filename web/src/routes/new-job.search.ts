/** What the URL of this page can say. */
export interface NewJobSearch {
  readonly [name: string]: never;
}

export function readNewJobSearch(_search: Record<string, unknown>): NewJobSearch {
  return {};
}
