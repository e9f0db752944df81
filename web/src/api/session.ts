/** Who looks, and what they may do. */

import { queryOptions, useSuspenseQuery } from "@tanstack/react-query";

import { answer, api, setCsrf, type Schemas } from "@/api/client";
import { keys } from "@/api/keys";

export type Session = Schemas["SessionAnswer"];
export type Role = Session["role"];

const RANK: Record<Role, number> = { viewer: 0, operator: 1, admin: 2 };

export const sessionQuery = queryOptions({
  queryKey: keys.session,
  queryFn: async (): Promise<Session> => {
    const session = await answer(api.GET("/api/session"));
    setCsrf(session.csrf);
    return session;
  },
  staleTime: Infinity,
});

export async function logIn(token: string): Promise<Session> {
  const session = await answer(api.POST("/api/session", { body: { token } }));
  setCsrf(session.csrf);
  return session;
}

export async function logOut(): Promise<void> {
  await api.DELETE("/api/session");
  setCsrf(null);
}

/** The session is read before any page is shown. */
export function useSession(): Session {
  return useSuspenseQuery(sessionQuery).data;
}

/** Whether the reader may do what asks for this role. */
export function useMay(role: Role): boolean {
  return RANK[useSession().role] >= RANK[role];
}
