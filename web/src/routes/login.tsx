/** The login page. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, useRouter } from "@tanstack/react-router";
import { useEffect } from "react";

import { BASE } from "@/api/http-client";
import { queryKeys } from "@/api/query-keys";
import { logIn } from "@/api/session";
import { LoginForm } from "@/components/login/login-form";
import { Panel } from "@/components/panel";
import { safeRedirectPath } from "@/lib/safe-redirect-path";

const route = getRouteApi("/login");

export function LoginRoute() {
  const { next } = route.useSearch();
  const router = useRouter();
  const client = useQueryClient();
  const login = useMutation({
    mutationFn: logIn,
    onSuccess: (session) => {
      // Discards data of the previous user.
      client.clear();
      client.setQueryData(queryKeys.session, session);
      // The router's paths are relative to the mount point of the application.
      router.history.push(BASE.pathname.replace(/\/$/, "") + safeRedirectPath(next));
    },
  });
  useEffect(() => {
    document.title = "Log in · Rota";
  }, []);
  return (
    <main className="mx-auto flex min-h-dvh w-full max-w-sm flex-col justify-center px-4">
      <h1 className="mb-4 text-center text-xl font-semibold tracking-tight">Log in to Rota</h1>
      <Panel>
        <LoginForm isBusy={login.isPending} error={login.error} onSubmit={(token) => login.mutate(token)} />
      </Panel>
      <p className="mt-4 text-center text-xs text-muted">
        Ask the server’s administrator for a token, or create one with{" "}
        <code className="whitespace-nowrap text-text">rota token create</code>.
      </p>
    </main>
  );
}
