/** The session: user, role, login and logout. */

import { queryOptions, useSuspenseQuery } from "@tanstack/react-query";

import { unwrap, api, setCsrfToken, type Schemas } from "@/api/http-client";
import { queryKeys } from "@/api/query-keys";

export type Session = Schemas["SessionResponse"];
export type Role = Session["role"];

const RANK: Record<Role, number> = { viewer: 0, operator: 1, admin: 2 };

export const sessionQuery = queryOptions({
  queryKey: queryKeys.session,
  queryFn: async (): Promise<Session> => {
    const session = await unwrap(api.GET("/api/session"));
    setCsrfToken(session.csrf);
    return session;
  },
  staleTime: Infinity,
});

export async function logIn(token: string): Promise<Session> {
  const session = await unwrap(api.POST("/api/session", { body: { token } }));
  setCsrfToken(session.csrf);
  return session;
}

export async function logOut(): Promise<void> {
  await api.DELETE("/api/session");
  setCsrfToken(null);
}

/** The session is loaded before any page is shown. */
export function useSession(): Session {
  return useSuspenseQuery(sessionQuery).data;
}

/** Whether the user has at least this role. */
export function useHasRole(role: Role): boolean {
  return RANK[useSession().role] >= RANK[role];
}
