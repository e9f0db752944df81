/** Search params of the new-job page. */

import { textParam } from "@/lib/parse-search-params";

export interface NewJobSearch {
  /** The task. */
  readonly task?: string;
  /** The job whose copy is the initial draft. */
  readonly from?: string;
}

export function readNewJobSearch(search: Record<string, unknown>): NewJobSearch {
  const [task, from] = [textParam(search.task), textParam(search.from, 300)];
  return { ...(task === undefined ? {} : { task }), ...(from === undefined ? {} : { from }) };
}
