/** The overview page: summary, alerts, charts, queues and tasks. */

import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";

import {
  metricsHistoryQuery,
  RANGES,
  taskMetricsQuery,
  type MetricsHistory,
  type Range,
  type TaskMetrics,
  weeklyHoursQuery,
  WEEKLY_HOURS_REFRESH_MS,
} from "@/api/metrics-history";
import { overviewQuery, type Overview } from "@/api/overview";
import { useSession } from "@/api/session";
import { Button } from "@/components/buttons";
import { SelectField } from "@/components/form-fields";
import { ErrorState, QueryContent, LoadingState } from "@/components/loading-empty-error-states";
import { GettingStarted } from "@/components/overview/getting-started";
import { HoursOfWeekHeatmap } from "@/components/overview/hours-of-week-heatmap";
import { NeedsAttentionList } from "@/components/overview/needs-attention-list";
import { QueueTable } from "@/components/overview/queue-table";
import { SlowestOrFailingTasksTable } from "@/components/overview/slowest-or-failing-tasks-table";
import { SummaryTiles } from "@/components/overview/summary-tiles";
import { LatencyChart, ThroughputChart } from "@/components/overview/throughput-and-latency-charts";
import { PageLayout } from "@/components/page-layout";
import { Panel } from "@/components/panel";
import { SegmentedControl } from "@/components/segmented-control";
import { formatBytes, formatPercent, formatShort } from "@/lib/format-number";
import { WEEKS } from "@/lib/heatmap-hours";
import { useInView } from "@/lib/use-in-view";
import { usePausablePolling, usePausableQuery } from "@/live/use-pausable-polling";
import type { OverviewSearch } from "@/routes/overview.search-params";

const route = getRouteApi("/authenticated/");

export function OverviewRoute() {
  const overview = useQuery(usePausableQuery(overviewQuery));
  if (overview.data === undefined) {
    return (
      <PageLayout title="Overview">
        {overview.error ? (
          <ErrorState error={overview.error} onRetry={() => void overview.refetch()} />
        ) : (
          <LoadingState lines={8} />
        )}
      </PageLayout>
    );
  }
  if (overview.data.queues.length === 0) {
    return (
      <PageLayout title="Overview">
        <GettingStarted />
      </PageLayout>
    );
  }
  return <OverviewContent overview={overview.data} />;
}

function OverviewContent({ overview }: { overview: Overview }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const session = useSession();
  const range = search.range ?? "hour";
  // A token limited to some queues has no access to the history of all queues.
  const queue = search.queue ?? session.queues[0];
  const { words, everyMs } = RANGES[range];
  const refetchInterval = usePausablePolling(everyMs);
  const history = useQuery({
    ...metricsHistoryQuery(range, queue),
    refetchInterval,
    placeholderData: (before) => before,
  });
  const slowest = useQuery({ ...taskMetricsQuery("slowest", range, queue), refetchInterval });
  const failing = useQuery({ ...taskMetricsQuery("failing", range, queue), refetchInterval });
  const names = overview.queues.map(({ name }) => name);

  function show(change: OverviewSearch) {
    void navigate({ search: (before) => ({ ...before, ...change }), replace: true, resetScroll: false });
  }

  return (
    <PageLayout title="Overview" lead={overview.server ? <StoreSummary server={overview.server} /> : undefined}>
      <SummaryTiles overview={overview} />
      <NeedsAttentionList alerts={overview.alerts} />
      <Panel
        title="Queues"
        isFlush
        actions={
          <Button variant="quiet" asChild>
            <Link to="/queues">All queues</Link>
          </Button>
        }
      >
        <QueueTable queues={overview.queues} at={overview.at} />
      </Panel>
      <div className="flex flex-wrap items-center justify-between gap-2">
        <h2 className="text-base font-semibold">History</h2>
        <div className="flex flex-wrap items-center gap-2">
          <SelectField
            label="Queue"
            isLabelHidden
            value={queue ?? ""}
            onChange={(selected) => show({ queue: selected === "" ? undefined : selected })}
            options={[
              ...(session.queues.length === 0 ? [{ value: "", label: "All queues" }] : []),
              ...names.map((name) => ({ value: name, label: name })),
            ]}
            className="w-40"
          />
          <SegmentedControl
            label="Range"
            value={range}
            onChange={(selected) => show({ range: selected === "hour" ? undefined : selected })}
            options={(Object.keys(RANGES) as Range[]).map((value) => ({ value, label: RANGES[value].label }))}
          />
        </div>
      </div>
      <Charts history={history} words={words} />
      <div className="grid gap-4 lg:grid-cols-2">
        <TaskSelectPanel title="Slowest tasks" order="slowest" query={slowest} words={words} />
        <TaskSelectPanel title="Tasks with most failures" order="failing" query={failing} words={words} />
      </div>
      <WeeklyHours queue={queue} of={search.hours ?? "completed"} onChange={(hours) => show({ hours })} />
    </PageLayout>
  );
}

function StoreSummary({ server }: { server: NonNullable<Overview["server"]> }) {
  const limit = server.maxmemory === null ? "" : ` of ${formatBytes(server.maxmemory)}`;
  return (
    <span className="tabular-nums text-xs">
      {server.server}, {formatBytes(server.used_memory)}
      {limit} used{server.is_aof_on === false && ", persistence off"}
    </span>
  );
}

function Charts({ history, words }: { history: UseQueryResult<MetricsHistory>; words: string }) {
  const total = history.data?.total;
  return (
    <>
      <Panel
        title="Throughput"
        actions={
          total && (
            <span className="tabular-nums text-xs text-muted">
              {formatShort(total.completed)} completed, {formatShort(total.failed)} failed
              {total.failure_rate !== null && total.failed > 0 && ` (${formatPercent(total.failure_rate)})`}
            </span>
          )
        }
      >
        <QueryContent query={history} lines={6}>
          {(data) => <ThroughputChart history={data} label={`Throughput, ${words}`} />}
        </QueryContent>
      </Panel>
      <div className="grid gap-4 lg:grid-cols-2">
        <Panel title="Waiting time">
          <QueryContent query={history} lines={6}>
            {(data) => <LatencyChart history={data} of="wait" label={`Waiting time, ${words}`} />}
          </QueryContent>
        </Panel>
        <Panel title="Running time">
          <QueryContent query={history} lines={6}>
            {(data) => <LatencyChart history={data} of="run" label={`Running time, ${words}`} />}
          </QueryContent>
        </Panel>
      </div>
    </>
  );
}

interface WeeklyHoursProps {
  queue: string | undefined;
  of: "completed" | "failed";
  onChange: (of: OverviewSearch["hours"]) => void;
}

/** Fetched only while visible: it is at the end of the page, and its response is large. */
function WeeklyHours({ queue, of, onChange }: WeeklyHoursProps) {
  const [ref, isSeen] = useInView<HTMLDivElement>();
  const hours = useQuery({
    ...weeklyHoursQuery(queue),
    enabled: isSeen,
    refetchInterval: usePausablePolling(WEEKLY_HOURS_REFRESH_MS),
  });
  return (
    <div ref={ref}>
      <Panel
        title={`By weekday and hour, last ${WEEKS} weeks`}
        actions={
          <SegmentedControl
            label="Show"
            value={of}
            onChange={(selected) => onChange(selected === "completed" ? undefined : selected)}
            options={[
              { value: "completed", label: "Completed" },
              { value: "failed", label: "Failed" },
            ]}
          />
        }
      >
        {isSeen || hours.data !== undefined ? (
          <QueryContent query={hours} lines={7}>
            {(data) => <HoursOfWeekHeatmap hours={data} of={of} />}
          </QueryContent>
        ) : (
          <div className="h-56" />
        )}
      </Panel>
    </div>
  );
}

interface TaskSelectPanelProps {
  title: string;
  order: "slowest" | "failing";
  query: UseQueryResult<TaskMetrics[]>;
  words: string;
}

function TaskSelectPanel({ title, order, query, words }: TaskSelectPanelProps) {
  return (
    <Panel title={title} isFlush>
      <QueryContent query={query} lines={4}>
        {(tasks) => {
          const shown = tasks.filter((task) =>
            order === "slowest" ? task.run.p95_ms !== null : task.failed + task.stalled > 0,
          );
          if (shown.length > 0) return <SlowestOrFailingTasksTable label={title} tasks={shown} order={order} />;
          return (
            <p className="px-4 py-6 text-center text-muted">
              {order === "slowest" ? `No jobs finished in ${words}.` : `No failed attempts in ${words}.`}
            </p>
          );
        }}
      </QueryContent>
    </Panel>
  );
}
