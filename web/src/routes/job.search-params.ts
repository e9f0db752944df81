/** Search params of the job page: the selected view. */

export const JOB_VIEWS = ["overview", "log", "history"] as const;
export type JobView = (typeof JOB_VIEWS)[number];

export interface JobSearch {
  readonly view?: JobView;
}

export function readJobSearch({ view }: Record<string, unknown>): JobSearch {
  return view === "log" || view === "history" ? { view } : {};
}
