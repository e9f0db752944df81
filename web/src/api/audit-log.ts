/** The audit log. */

import { infiniteQueryOptions } from "@tanstack/react-query";

import { unwrap, api, type Schemas } from "@/api/http-client";
import { queryKeys } from "@/api/query-keys";

export type AuditEntry = Schemas["AuditEntry"];

export interface AuditFilters {
  readonly who?: string;
  readonly action?: string;
  readonly target?: string;
}

export function auditQuery(filters: AuditFilters) {
  return infiniteQueryOptions({
    queryKey: queryKeys.audit(filters),
    queryFn: ({ pageParam }) =>
      unwrap(api.GET("/api/audit", { params: { query: { ...filters, cursor: pageParam, limit: 100 } } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.cursor ?? undefined,
  });
}
