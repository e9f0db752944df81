/** Search params of the queues page. */

import { textParam } from "@/lib/parse-search-params";

export interface QueuesSearch {
  /** Part of a name. */
  readonly text?: string;
}

export function readQueuesSearch(search: Record<string, unknown>): QueuesSearch {
  return { text: textParam(search.text) };
}
