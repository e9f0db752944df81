/** API tokens: who may do what, until when, and when each was last used. */

import { queryOptions } from "@tanstack/react-query";

import { api, unwrap, type Schemas } from "@/api/http-client";
import { queryKeys } from "@/api/query-keys";

export type ApiToken = Schemas["ApiToken"];
export type NewToken = Schemas["NewApiToken"];

/** The secret of a new token is returned once. */
export type CreatedToken = Schemas["ApiTokenResponse"];

export const tokensQuery = queryOptions({
  queryKey: queryKeys.tokens,
  queryFn: async ({ signal }): Promise<readonly ApiToken[]> =>
    (await unwrap(api.GET("/api/tokens", { signal }))).tokens,
});

export function createToken(body: NewToken): Promise<CreatedToken> {
  return unwrap(api.POST("/api/tokens", { body }));
}

export function revokeToken(id: string) {
  return unwrap(api.DELETE("/api/tokens/{token_id}", { params: { path: { token_id: id } } }));
}
