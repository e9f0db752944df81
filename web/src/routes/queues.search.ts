/** What the URL of this page can say. */

import { text } from "@/lib/search";

export interface QueuesSearch {
  /** Part of a name. */
  readonly text?: string;
}

export function readQueuesSearch(search: Record<string, unknown>): QueuesSearch {
  return { text: text(search.text) };
}
