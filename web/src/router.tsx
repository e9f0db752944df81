/** All routes. The code of a page is loaded when it is first opened. */

import type { QueryClient } from "@tanstack/react-query";
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  redirect,
  type AsyncRouteComponent,
} from "@tanstack/react-router";

import { api, ApiError, BASE } from "@/api/http-client";
import { jobsQuery } from "@/api/job-list";
import { sessionQuery } from "@/api/session";
import { LoadingState } from "@/components/loading-empty-error-states";
import { AppShell } from "@/components/shell/app-shell";
import { ToastProvider } from "@/components/toasts";
import { readAuditSearch } from "@/routes/audit.search-params";
import { readDeadLettersSearch } from "@/routes/dead-letters.search-params";
import { NOT_LOADED, NotFoundPage, PageError, FullPageError } from "@/routes/error-pages";
import { readJobSearch } from "@/routes/job.search-params";
import { toListQuery, readJobsSearch } from "@/routes/jobs.search-params";
import { readLocksSearch } from "@/routes/locks.search-params";
import { readNewJobSearch } from "@/routes/new-job.search-params";
import { readOverviewSearch } from "@/routes/overview.search-params";
import { readQueueSearch } from "@/routes/queue.search-params";
import { readQueuesSearch } from "@/routes/queues.search-params";
import { readScalingSearch } from "@/routes/scaling.search-params";
import { readSchedulesSearch } from "@/routes/schedules.search-params";
import { readTaskSearch } from "@/routes/task.search-params";
import { readWorkflowSearch } from "@/routes/workflow.search-params";
import { readWorkflowsSearch } from "@/routes/workflows.search-params";

/**
 * Loads the code of a page. If it is missing because the server was upgraded, the router reloads the application. If the
 * server does not respond, a reload would show nothing: the app shell stays and shows the error.
 */
async function loadPage<M>(page: Promise<M>): Promise<M> {
  try {
    return await page;
  } catch (error) {
    await api.GET("/healthz").catch(() => {
      throw new ApiError("This page has not been loaded yet.", 0, NOT_LOADED);
    });
    throw error;
  }
}

const root = createRootRouteWithContext<{ queryClient: QueryClient }>()();

const login = createRoute({
  getParentRoute: () => root,
  path: "/login",
  validateSearch: (search: Record<string, unknown>): { next?: string } =>
    typeof search.next === "string" ? { next: search.next } : {},
  component: lazyRouteComponent(() => loadPage(import("@/routes/login")), "LoginRoute"),
});

/** All pages except the login: they require a session and share the app shell. */
const authenticated = createRoute({
  getParentRoute: () => root,
  id: "authenticated",
  beforeLoad: async ({ context, location }) => {
    try {
      return { session: await context.queryClient.query({ ...sessionQuery, staleTime: "static" }) };
    } catch (error) {
      if (error instanceof ApiError && error.status === 401)
        throw redirect({ to: "/login", search: { next: location.href } });
      throw error;
    }
  },
  component: AppShell,
  errorComponent: FullPageError,
  pendingComponent: LoadingState,
});

const overview = createRoute({
  getParentRoute: () => authenticated,
  path: "/",
  validateSearch: readOverviewSearch,
  component: lazyRouteComponent(() => loadPage(import("@/routes/overview")), "OverviewRoute"),
});
const jobs = createRoute({
  getParentRoute: () => authenticated,
  path: "/jobs",
  validateSearch: readJobsSearch,
  loaderDeps: ({ search }) => search,
  // The rows load in parallel with the page's code; errors are shown by the page.
  loader: ({ context, deps, preload }) => {
    const { filter, order } = toListQuery(deps, context.session.queues);
    if (!preload) context.queryClient.infiniteQuery(jobsQuery(filter, order)).catch(() => undefined);
  },
  component: lazyRouteComponent(() => loadPage(import("@/routes/jobs")), "JobsRoute"),
});
const newJob = createRoute({
  getParentRoute: () => authenticated,
  path: "/jobs/new",
  validateSearch: readNewJobSearch,
  component: lazyRouteComponent(() => loadPage(import("@/routes/new-job")), "NewJobRoute"),
});
const job = createRoute({
  getParentRoute: () => authenticated,
  path: "/jobs/$id",
  validateSearch: readJobSearch,
  component: lazyRouteComponent(() => loadPage(import("@/routes/job")), "JobRoute"),
});
const workflows = createRoute({
  getParentRoute: () => authenticated,
  path: "/workflows",
  validateSearch: readWorkflowsSearch,
  component: lazyRouteComponent(() => loadPage(import("@/routes/workflows")), "WorkflowsRoute"),
});
const workflow = createRoute({
  getParentRoute: () => authenticated,
  path: "/workflows/$id",
  validateSearch: readWorkflowSearch,
  component: lazyRouteComponent(() => loadPage(import("@/routes/workflow")), "WorkflowRoute"),
});
const dead = createRoute({
  getParentRoute: () => authenticated,
  path: "/dead",
  validateSearch: readDeadLettersSearch,
  component: lazyRouteComponent(() => loadPage(import("@/routes/dead-letters")), "DeadLettersRoute"),
});
const queues = createRoute({
  getParentRoute: () => authenticated,
  path: "/queues",
  validateSearch: readQueuesSearch,
  component: lazyRouteComponent(() => loadPage(import("@/routes/queues")), "QueuesRoute"),
});
const queue = createRoute({
  getParentRoute: () => authenticated,
  path: "/queues/$name",
  validateSearch: readQueueSearch,
  component: lazyRouteComponent(() => loadPage(import("@/routes/queue")), "QueueRoute"),
});

const task = createRoute({
  getParentRoute: () => authenticated,
  path: "/tasks/$name",
  validateSearch: readTaskSearch,
  component: lazyRouteComponent(() => loadPage(import("@/routes/task")), "TaskRoute"),
});

const workers = createRoute({
  getParentRoute: () => authenticated,
  path: "/workers",
  component: lazyRouteComponent(() => loadPage(import("@/routes/workers")), "WorkersRoute"),
});
const scaling = createRoute({
  getParentRoute: () => authenticated,
  path: "/scaling",
  validateSearch: readScalingSearch,
  component: lazyRouteComponent(() => loadPage(import("@/routes/scaling")), "ScalingRoute"),
});
const schedules = createRoute({
  getParentRoute: () => authenticated,
  path: "/schedules",
  validateSearch: readSchedulesSearch,
  component: lazyRouteComponent(() => loadPage(import("@/routes/schedules")), "SchedulesRoute"),
});
const locks = createRoute({
  getParentRoute: () => authenticated,
  path: "/locks",
  validateSearch: readLocksSearch,
  component: lazyRouteComponent(() => loadPage(import("@/routes/locks")), "LocksRoute"),
});
const operations = createRoute({
  getParentRoute: () => authenticated,
  path: "/operations",
  component: lazyRouteComponent(() => loadPage(import("@/routes/operations")), "OperationsRoute"),
});

const tokens = createRoute({
  getParentRoute: () => authenticated,
  path: "/tokens",
  component: lazyRouteComponent(() => loadPage(import("@/routes/tokens")), "TokensRoute"),
});

const audit = createRoute({
  getParentRoute: () => authenticated,
  path: "/audit",
  validateSearch: readAuditSearch,
  component: lazyRouteComponent(() => loadPage(import("@/routes/audit")), "AuditRoute"),
});

/** Every other URL: shown within the app shell. */
const notFound = createRoute({ getParentRoute: () => authenticated, path: "$", component: NotFoundPage });

const tree = root.addChildren([
  login,
  authenticated.addChildren([
    overview,
    jobs,
    newJob,
    job,
    workflows,
    workflow,
    dead,
    queues,
    queue,
    task,
    workers,
    scaling,
    schedules,
    locks,
    operations,
    tokens,
    audit,
    notFound,
  ]),
]);

export function createAppRouter(queryClient: QueryClient) {
  const router = createRouter({
    routeTree: tree,
    basepath: BASE.pathname,
    context: { queryClient },
    defaultPreload: "intent",
    defaultPreloadStaleTime: 0,
    defaultErrorComponent: PageError,
    scrollRestoration: true,
    // Toasts may contain links, so they are rendered within the router.
    InnerWrap: ToastProvider,
  });
  // The code of the first page loads in parallel with the session.
  const [routes] = router.getMatchedRoutes(router.latestLocation.pathname);
  for (const route of routes) {
    const { component } = route.options as { component?: AsyncRouteComponent<object> };
    void component?.preload?.();
  }
  return router;
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof createAppRouter>;
  }
}
