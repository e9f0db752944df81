/** What the URL of this page can say. */

import { text } from "@/lib/search";

export interface AuditSearch {
  readonly who?: string;
  readonly action?: string;
  /** Part of what was changed. */
  readonly text?: string;
}

export function readAuditSearch(search: Record<string, unknown>): AuditSearch {
  return { who: text(search.who), action: text(search.action), text: text(search.text) };
}
