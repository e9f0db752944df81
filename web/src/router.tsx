/** Every URL there is. Pages are loaded when they are first opened. */

import type { QueryClient } from "@tanstack/react-query";
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  redirect,
  type AsyncRouteComponent,
} from "@tanstack/react-router";

import { api, ApiError, BASE } from "@/api/client";
import { jobsQuery } from "@/api/jobs";
import { sessionQuery } from "@/api/session";
import { Shell } from "@/components/shell/shell";
import { Loading } from "@/components/looks";
import { ToastProvider } from "@/components/toasts";
import { NOT_LOADED, NotFound, PageTrouble, Trouble } from "@/routes/trouble";
import { readAuditSearch } from "@/routes/audit.search";
import { readDeadSearch } from "@/routes/dead.search";
import { readJobSearch } from "@/routes/job.search";
import { listOf, readJobsSearch } from "@/routes/jobs.search";
import { readLocksSearch } from "@/routes/locks.search";
import { readNewJobSearch } from "@/routes/new-job.search";
import { readOverviewSearch } from "@/routes/overview.search";
import { readQueuesSearch } from "@/routes/queues.search";
import { readSchedulesSearch } from "@/routes/schedules.search";
import { readWorkflowSearch } from "@/routes/workflow.search";
import { readWorkflowsSearch } from "@/routes/workflows.search";

/**
 * The code of a page. Where it is not there because the server has become a newer one, the router loads everything anew;
 * where the server does not answer, that would leave the reader with nothing: the frame stays, and says what is wrong.
 */
async function loadPage<M>(page: Promise<M>): Promise<M> {
  try {
    return await page;
  } catch (error) {
    await api.GET("/healthz").catch(() => {
      throw new ApiError("This page was not opened before, so it has to be loaded first.", 0, NOT_LOADED);
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

/** All pages but the login: they need a session, and share the frame. */
const inside = createRoute({
  getParentRoute: () => root,
  id: "inside",
  beforeLoad: async ({ context, location }) => {
    try {
      return { session: await context.queryClient.query({ ...sessionQuery, staleTime: "static" }) };
    } catch (error) {
      if (error instanceof ApiError && error.status === 401)
        throw redirect({ to: "/login", search: { next: location.href } });
      throw error;
    }
  },
  component: Shell,
  errorComponent: Trouble,
  pendingComponent: Loading,
});

const overview = createRoute({
  getParentRoute: () => inside,
  path: "/",
  validateSearch: readOverviewSearch,
  component: lazyRouteComponent(() => loadPage(import("@/routes/overview")), "OverviewRoute"),
});
const jobs = createRoute({
  getParentRoute: () => inside,
  path: "/jobs",
  validateSearch: readJobsSearch,
  loaderDeps: ({ search }) => search,
  // The rows are on their way while the code that shows them is; what goes wrong is said where they are shown.
  loader: ({ context, deps, preload }) => {
    const { filter, order } = listOf(deps, context.session.queues);
    if (!preload) context.queryClient.infiniteQuery(jobsQuery(filter, order)).catch(() => undefined);
  },
  component: lazyRouteComponent(() => loadPage(import("@/routes/jobs")), "JobsRoute"),
});
const newJob = createRoute({
  getParentRoute: () => inside,
  path: "/jobs/new",
  validateSearch: readNewJobSearch,
  component: lazyRouteComponent(() => loadPage(import("@/routes/new-job")), "NewJobRoute"),
});
const job = createRoute({
  getParentRoute: () => inside,
  path: "/jobs/$id",
  validateSearch: readJobSearch,
  component: lazyRouteComponent(() => loadPage(import("@/routes/job")), "JobRoute"),
});
const workflows = createRoute({
  getParentRoute: () => inside,
  path: "/workflows",
  validateSearch: readWorkflowsSearch,
  component: lazyRouteComponent(() => loadPage(import("@/routes/workflows")), "WorkflowsRoute"),
});
const workflow = createRoute({
  getParentRoute: () => inside,
  path: "/workflows/$id",
  validateSearch: readWorkflowSearch,
  component: lazyRouteComponent(() => loadPage(import("@/routes/workflow")), "WorkflowRoute"),
});
const dead = createRoute({
  getParentRoute: () => inside,
  path: "/dead",
  validateSearch: readDeadSearch,
  component: lazyRouteComponent(() => loadPage(import("@/routes/dead")), "DeadRoute"),
});
const queues = createRoute({
  getParentRoute: () => inside,
  path: "/queues",
  validateSearch: readQueuesSearch,
  component: lazyRouteComponent(() => loadPage(import("@/routes/queues")), "QueuesRoute"),
});
const workers = createRoute({
  getParentRoute: () => inside,
  path: "/workers",
  component: lazyRouteComponent(() => loadPage(import("@/routes/workers")), "WorkersRoute"),
});
const schedules = createRoute({
  getParentRoute: () => inside,
  path: "/schedules",
  validateSearch: readSchedulesSearch,
  component: lazyRouteComponent(() => loadPage(import("@/routes/schedules")), "SchedulesRoute"),
});
const locks = createRoute({
  getParentRoute: () => inside,
  path: "/locks",
  validateSearch: readLocksSearch,
  component: lazyRouteComponent(() => loadPage(import("@/routes/locks")), "LocksRoute"),
});
const audit = createRoute({
  getParentRoute: () => inside,
  path: "/audit",
  validateSearch: readAuditSearch,
  component: lazyRouteComponent(() => loadPage(import("@/routes/audit")), "AuditRoute"),
});

/** Every other address: the frame stays, and with it the ways on. */
const elsewhere = createRoute({ getParentRoute: () => inside, path: "$", component: NotFound });

const tree = root.addChildren([
  login,
  inside.addChildren([
    overview,
    jobs,
    newJob,
    job,
    workflows,
    workflow,
    dead,
    queues,
    workers,
    schedules,
    locks,
    audit,
    elsewhere,
  ]),
]);

export function makeRouter(queryClient: QueryClient) {
  const router = createRouter({
    routeTree: tree,
    basepath: BASE.pathname,
    context: { queryClient },
    defaultPreload: "intent",
    defaultPreloadStaleTime: 0,
    defaultErrorComponent: PageTrouble,
    scrollRestoration: true,
    // News may hold links, so they are told within the router.
    InnerWrap: ToastProvider,
  });
  // The code of the first page is on its way while the session is read.
  const [routes] = router.getMatchedRoutes(router.latestLocation.pathname);
  for (const route of routes) {
    const { component } = route.options as { component?: AsyncRouteComponent<object> };
    void component?.preload?.();
  }
  return router;
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof makeRouter>;
  }
}
