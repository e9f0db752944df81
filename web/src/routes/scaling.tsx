/** The scaling page: the autoscaler's state, the pool over time, and its decisions with their reasons. */

import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { FlaskConical, Pause, Play, SlidersHorizontal } from "lucide-react";
import { useEffect, useState } from "react";

import { ApiError } from "@/api/http-client";
import { RANGES, type Range } from "@/lib/chart-period";
import { queryKeys } from "@/api/query-keys";
import {
  changeScaling,
  dryRunScaling,
  poolHistoryQuery,
  scalingDecisionsQuery,
  scalingQuery,
  type Scaling,
} from "@/api/scaling";
import { useSession } from "@/api/session";
import { Button } from "@/components/buttons";
import { LoadMoreButton } from "@/components/load-more-button";
import { ErrorState, LoadingState, QueryContent } from "@/components/loading-empty-error-states";
import { PageLayout } from "@/components/page-layout";
import { Panel } from "@/components/panel";
import { ChangeLimitsDialog } from "@/components/scaling/change-limits-dialog";
import { DecisionList } from "@/components/scaling/decision-list";
import { DryRunDialog } from "@/components/scaling/preview-decision-dialog";
import { PauseAutoscalerDialog } from "@/components/scaling/pause-autoscaler-dialog";
import { PlannerPanel } from "@/components/scaling/planner-panel";
import { BacklogChart, WaitChart, WorkersChart } from "@/components/scaling/pool-charts";
import { PoolTiles } from "@/components/scaling/pool-tiles";
import { AutoscalerNeverRan } from "@/components/scaling/start-autoscaler";
import { SegmentedControl } from "@/components/segmented-control";
import { useMutationWithToast } from "@/lib/use-mutation-with-toast";
import { usePausablePolling } from "@/live/use-pausable-polling";

const route = getRouteApi("/authenticated/scaling");
/** No event reports that a planner has stopped, or stands by. */
const IDLE_POLL_MS = 10_000;

export function ScalingRoute() {
  const isLimited = useSession().queues.length > 0;
  if (isLimited) {
    return (
      <PageLayout title="Scaling">
        <ErrorState error={new ApiError("The autoscaler requires access to all queues.", 403, "forbidden")} />
      </PageLayout>
    );
  }
  return <ScalingOfAllQueues />;
}

function ScalingOfAllQueues() {
  const scaling = useQuery({ ...scalingQuery, refetchInterval: usePausablePolling(IDLE_POLL_MS) });
  const { data } = scaling;
  const hasEverRun = data !== undefined && (data.planner !== null || data.latest !== null || data.decisions.length > 0);
  return (
    <PageLayout title="Scaling" actions={hasEverRun && <Actions scaling={data} />}>
      <QueryContent query={scaling} lines={8}>
        {(loaded) =>
          hasEverRun ? (
            <>
              <PlannerPanel scaling={loaded} />
              <PoolTiles scaling={loaded} />
              <Charts targetWaitMs={loaded.settings.target_wait_ms} />
              <Decisions newest={loaded.decisions[0]?.id} />
            </>
          ) : (
            <AutoscalerNeverRan />
          )
        }
      </QueryContent>
    </PageLayout>
  );
}

function Actions({ scaling: { settings, planner, actions } }: { scaling: Scaling }) {
  const [open, setOpen] = useState<"pause" | "limits" | "dry run" | null>(null);
  const invalidates = [queryKeys.allScaling];
  const pause = useMutationWithToast({
    run: () => changeScaling({ is_paused: true }),
    successMessage: () => "Autoscaler paused",
    invalidates,
    onDone: () => setOpen(null),
    hidesErrors: true,
  });
  const resume = useMutationWithToast({
    run: () => changeScaling({ is_paused: null }),
    successMessage: () => "Autoscaler resumed",
    invalidates,
  });
  const change = useMutationWithToast({
    run: changeScaling,
    successMessage: ({ min_workers: min, max_workers: max }) =>
      min === null ? "Limits restored" : `Limits changed: ${min} to ${max} workers`,
    invalidates,
    onDone: () => setOpen(null),
    hidesErrors: true,
  });
  const dryRun = useMutation({ mutationFn: dryRunScaling });

  function close() {
    pause.reset();
    change.reset();
    dryRun.reset();
    setOpen(null);
  }

  return (
    <>
      {planner !== null && actions.includes("dry_run") && (
        <Button
          onClick={() => {
            setOpen("dry run");
            dryRun.mutate({});
          }}
        >
          <FlaskConical aria-hidden className="size-3.5" /> Dry run
        </Button>
      )}
      {actions.includes("change") && (
        <>
          <Button onClick={() => setOpen("limits")}>
            <SlidersHorizontal aria-hidden className="size-3.5" /> Change limits
          </Button>
          {settings.is_paused ? (
            <Button variant="primary" isBusy={resume.isPending} onClick={() => resume.mutate(undefined)}>
              <Play aria-hidden className="size-3.5" /> Resume
            </Button>
          ) : (
            <Button onClick={() => setOpen("pause")}>
              <Pause aria-hidden className="size-3.5" /> Pause
            </Button>
          )}
        </>
      )}
      {open === "pause" && (
        <PauseAutoscalerDialog
          isBusy={pause.isPending}
          error={pause.error}
          onClose={close}
          onConfirm={() => pause.mutate(undefined)}
        />
      )}
      {open === "limits" && (
        <ChangeLimitsDialog
          settings={settings}
          isBusy={change.isPending}
          error={change.error}
          onClose={close}
          onChange={(wanted) => change.mutate(wanted)}
        />
      )}
      {open === "dry run" && (
        <DryRunDialog
          settings={settings}
          result={dryRun.data}
          isBusy={dryRun.isPending}
          error={dryRun.error}
          onClose={close}
          onRun={(limits) => dryRun.mutate(limits)}
        />
      )}
    </>
  );
}

function Charts({ targetWaitMs }: { targetWaitMs: number | null }) {
  const { range = "hour" } = route.useSearch();
  const navigate = route.useNavigate();
  const { words, everyMs } = RANGES[range];
  const history = useQuery({
    ...poolHistoryQuery(range),
    refetchInterval: usePausablePolling(everyMs),
    placeholderData: (before) => before,
  });
  return (
    <>
      <div className="flex flex-wrap items-center justify-between gap-2">
        <h2 className="text-base font-semibold">History</h2>
        <SegmentedControl
          label="Range"
          value={range}
          onChange={(selected) =>
            void navigate({
              search: { range: selected === "hour" ? undefined : selected },
              replace: true,
              resetScroll: false,
            })
          }
          options={(Object.keys(RANGES) as Range[]).map((value) => ({ value, label: RANGES[value].label }))}
        />
      </div>
      <Panel title="Workers">
        <QueryContent query={history} lines={6}>
          {(data) => <WorkersChart history={data} label={`Workers, ${words}`} />}
        </QueryContent>
      </Panel>
      <div className="grid gap-4 lg:grid-cols-2">
        <Panel title="Backlog">
          <QueryContent query={history} lines={6}>
            {(data) => <BacklogChart history={data} label={`Backlog, ${words}`} />}
          </QueryContent>
        </Panel>
        <Panel title="Waiting time">
          <QueryContent query={history} lines={6}>
            {(data) => <WaitChart history={data} targetWaitMs={targetWaitMs} label={`Waiting time, ${words}`} />}
          </QueryContent>
        </Panel>
      </div>
    </>
  );
}

/** `newest` is the id of the newest stored decision: when it changes, the list is read again. */
function Decisions({ newest }: { newest: string | undefined }) {
  const client = useQueryClient();
  const decisions = useInfiniteQuery(scalingDecisionsQuery);
  const loaded = decisions.data?.pages.flatMap((page) => page.decisions);
  const isOutdated = loaded !== undefined && newest !== undefined && loaded[0]?.id !== newest;
  useEffect(() => {
    if (isOutdated) void client.invalidateQueries({ queryKey: queryKeys.scalingDecisions }, { cancelRefetch: false });
  }, [client, isOutdated, newest]);
  return (
    <>
      <Panel title="Decisions" isFlush actions={<span className="text-xs text-muted">kept for 30 days</span>}>
        {loaded === undefined ? (
          decisions.error ? (
            <ErrorState error={decisions.error} onRetry={() => void decisions.refetch()} />
          ) : (
            <LoadingState lines={6} />
          )
        ) : loaded.length === 0 ? (
          <p className="px-4 py-6 text-center text-muted">No decision is stored yet.</p>
        ) : (
          <DecisionList decisions={loaded} />
        )}
      </Panel>
      <LoadMoreButton
        hasMore={decisions.hasNextPage}
        isBusy={decisions.isFetchingNextPage}
        onMore={() => void decisions.fetchNextPage()}
      />
    </>
  );
}
