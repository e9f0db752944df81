/** What is shown in place of a page that does not exist, or could not be shown. */

import { Link, useLocation, useRouter, type ErrorComponentProps } from "@tanstack/react-router";
import { SearchX } from "lucide-react";

import { api, ApiError } from "@/api/client";
import { Button } from "@/components/button";
import { Empty, Failure } from "@/components/looks";
import { Page } from "@/components/page";
import { Panel } from "@/components/panel";

export function NotFound() {
  const { pathname } = useLocation();
  return (
    <Page title="No such page">
      <Panel>
        <Empty
          icon={SearchX}
          title="There is nothing at this address"
          action={
            <>
              <Button asChild look="primary">
                <Link to="/">Overview</Link>
              </Button>
              <Button asChild>
                <Link to="/jobs" search={{}}>
                  Jobs
                </Link>
              </Button>
            </>
          }
        >
          <p>
            <span className="font-mono break-all">{pathname}</span> is no page of this dashboard. A link may be cut off,
            or older than the server.
          </p>
          <p className="mt-1">The search above finds jobs by their ids, and every page.</p>
        </Empty>
      </Panel>
    </Page>
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
