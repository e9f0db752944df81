/** What the URL of a job's page can say: which view is shown. */

export const JOB_VIEWS = ["overview", "log", "history"] as const;
export type JobView = (typeof JOB_VIEWS)[number];

export interface JobSearch {
  readonly view?: JobView;
}

export function readJobSearch({ view }: Record<string, unknown>): JobSearch {
  return view === "log" || view === "history" ? { view } : {};
}
