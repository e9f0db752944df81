/** What is shown in place of a page that does not exist, or could not be shown. */

import { Link, useRouter, type ErrorComponentProps } from "@tanstack/react-router";

import { api, ApiError } from "@/api/client";
import { Button } from "@/components/button";
import { Empty, Failure } from "@/components/looks";

export function NotFound() {
  return (
    <Empty
      title="There is no such page"
      action={
        <Button asChild>
          <Link to="/">Overview</Link>
        </Button>
      }
    />
  );
}

/** The code of a page could not be loaded. */
export const NOT_LOADED = "not_loaded";

/** In place of a page. */
export function PageTrouble({ error, reset }: ErrorComponentProps) {
  const router = useRouter();
  return (
    <Failure
      error={error}
      onRetry={() => {
        if (error instanceof ApiError && error.code === NOT_LOADED) {
          // Only from a server that answers: else not even this would be left.
          api.GET("/healthz").then(
            () => window.location.reload(),
            () => undefined,
          );
          return;
        }
        reset();
        void router.invalidate();
      }}
    />
  );
}

/** In place of everything. */
export function Trouble(props: ErrorComponentProps) {
  return (
    <main className="mx-auto max-w-2xl pt-16">
      <PageTrouble {...props} />
    </main>
  );
}
