/** What the URL of this page can say. */

import { text } from "@/lib/search";

export interface AuditSearch {
  readonly who?: string;
  /** As cancel, pause, purge. */
  readonly action?: string;
  /** Part of what was changed. */
  readonly target?: string;
}

export function readAuditSearch(search: Record<string, unknown>): AuditSearch {
  return { who: text(search.who), action: text(search.action, 50), target: text(search.target) };
}
