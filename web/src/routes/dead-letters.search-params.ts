/** Search params of the dead-letters page. */

import { textParam } from "@/lib/parse-search-params";

export interface DeadLettersSearch {
  readonly queue?: string;
  /** The class of the error. */
  readonly error?: string;
  /** Text anywhere in the record. */
  readonly text?: string;
  /** The group whose jobs are shown. */
  readonly group?: string;
}

export function readDeadLettersSearch(search: Record<string, unknown>): DeadLettersSearch {
  return {
    queue: textParam(search.queue),
    error: textParam(search.error),
    text: textParam(search.text),
    group: textParam(search.group),
  };
}
