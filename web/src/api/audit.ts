/** Who changed what. */

import { infiniteQueryOptions } from "@tanstack/react-query";

import { answer, api, type Schemas } from "@/api/client";
import { keys } from "@/api/keys";

export type AuditEntry = Schemas["AuditEntry"];

export interface AuditFilters {
  readonly who?: string;
  readonly action?: string;
  readonly target?: string;
}

export function auditQuery(filters: AuditFilters) {
  return infiniteQueryOptions({
    queryKey: [...keys.audit, filters],
    queryFn: ({ pageParam }) =>
      answer(api.GET("/api/audit", { params: { query: { ...filters, cursor: pageParam, limit: 100 } } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.cursor ?? undefined,
  });
}
