/** The pages for unknown URLs and for errors. */

import { Link, useLocation, useRouter, type ErrorComponentProps } from "@tanstack/react-router";
import { SearchX } from "lucide-react";

import { api, ApiError } from "@/api/http-client";
import { Button } from "@/components/buttons";
import { EmptyState, ErrorState } from "@/components/loading-empty-error-states";
import { PageLayout } from "@/components/page-layout";
import { Panel } from "@/components/panel";

export function NotFoundPage() {
  const { pathname } = useLocation();
  return (
    <PageLayout title="Page not found">
      <Panel>
        <EmptyState
          icon={SearchX}
          title="This page does not exist"
          action={
            <>
              <Button asChild variant="primary">
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
            <span className="font-mono break-all">{pathname}</span> is not a page of this dashboard. The link may be
            incomplete or outdated.
          </p>
          <p className="mt-1">Use the search above to find a job by its ID, or a page.</p>
        </EmptyState>
      </Panel>
    </PageLayout>
  );
}

/** The code of a page could not be loaded. */
export const NOT_LOADED = "not_loaded";

/** Replaces a page that failed to render. */
export function PageError({ error, reset }: ErrorComponentProps) {
  const router = useRouter();
  return (
    <ErrorState
      error={error}
      onRetry={() => {
        if (error instanceof ApiError && error.code === NOT_LOADED) {
          // Reloads only if the server responds: otherwise the browser's error page would replace this one.
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

/** Replaces the whole application. */
export function FullPageError(props: ErrorComponentProps) {
  return (
    <main className="mx-auto max-w-2xl pt-16">
      <PageError {...props} />
    </main>
  );
}
