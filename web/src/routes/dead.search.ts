/** What the URL of this page can say. */

import { text } from "@/lib/search";

export interface DeadSearch {
  readonly queue?: string;
  /** The class of the error. */
  readonly error?: string;
  /** What jobs mention. */
  readonly text?: string;
  /** The group whose jobs are shown. */
  readonly group?: string;
}

export function readDeadSearch(search: Record<string, unknown>): DeadSearch {
  return {
    queue: text(search.queue),
    error: text(search.error),
    text: text(search.text),
    group: text(search.group),
  };
}
