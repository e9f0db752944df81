/** Search params of the audit page. */

import { textParam } from "@/lib/parse-search-params";

export interface AuditSearch {
  readonly who?: string;
  /** The action: cancel, pause, purge, … */
  readonly action?: string;
  /** Part of the name of the changed object. */
  readonly target?: string;
}

export function readAuditSearch(search: Record<string, unknown>): AuditSearch {
  return { who: textParam(search.who), action: textParam(search.action, 50), target: textParam(search.target) };
}
