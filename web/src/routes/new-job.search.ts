/** What the URL of the form can say. */

import { text } from "@/lib/search";

export interface NewJobSearch {
  /** The task. */
  readonly task?: string;
  /** A job to begin with a copy of. */
  readonly from?: string;
}

export function readNewJobSearch(search: Record<string, unknown>): NewJobSearch {
  const [task, from] = [text(search.task), text(search.from, 300)];
  return { ...(task === undefined ? {} : { task }), ...(from === undefined ? {} : { from }) };
}
