/** Search params of the locks page. */

import { textParam } from "@/lib/parse-search-params";

export interface LocksSearch {
  readonly queue?: string;
  /** The lock's name. */
  readonly lock?: string;
}

export function readLocksSearch(search: Record<string, unknown>): LocksSearch {
  return { queue: textParam(search.queue), lock: textParam(search.lock, 128) };
}
