/** What the URL of this page can say. */
export interface AuditSearch {
  readonly [name: string]: never;
}

export function readAuditSearch(_search: Record<string, unknown>): AuditSearch {
  return {};
}
