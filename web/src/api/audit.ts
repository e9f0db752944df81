/** Who changed what. */

import { infiniteQueryOptions } from "@tanstack/react-query";

import { answer, api, type Schemas } from "@/api/client";
import { keys } from "@/api/keys";

export type AuditEntry = Schemas["AuditEntry"];

export const auditQuery = infiniteQueryOptions({
  queryKey: keys.audit,
  queryFn: ({ pageParam }) => answer(api.GET("/api/audit", { params: { query: { cursor: pageParam, limit: 200 } } })),
  initialPageParam: undefined as string | undefined,
  getNextPageParam: (page) => page.cursor ?? undefined,
});
