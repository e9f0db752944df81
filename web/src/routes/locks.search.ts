/** What the URL of this page can say. */

import { text } from "@/lib/search";

export interface LocksSearch {
  readonly queue?: string;
  /** The lock's name. */
  readonly lock?: string;
}

export function readLocksSearch(search: Record<string, unknown>): LocksSearch {
  return { queue: text(search.queue), lock: text(search.lock, 128) };
}
