import { useMutation, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, useRouter } from "@tanstack/react-router";
import { useEffect } from "react";

import { BASE } from "@/api/client";
import { keys } from "@/api/keys";
import { logIn } from "@/api/session";
import { LoginForm } from "@/components/login/login-form";
import { Panel } from "@/components/panel";
import { safeNext } from "@/lib/next";

const route = getRouteApi("/login");

export function LoginRoute() {
  const { next } = route.useSearch();
  const router = useRouter();
  const client = useQueryClient();
  const login = useMutation({
    mutationFn: logIn,
    onSuccess: (session) => {
      // What another reader saw is not for this one.
      client.clear();
      client.setQueryData(keys.session, session);
      // The router names its pages from where the application is mounted.
      router.history.push(BASE.pathname.replace(/\/$/, "") + safeNext(next));
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
        Whoever runs the server makes a token with{" "}
        <code className="whitespace-nowrap text-text">rota token create</code>.
      </p>
    </main>
  );
}
