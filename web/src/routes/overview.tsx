/** The overview page: summary, alerts, charts, queues and tasks. */

import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";

import { taskMetricsQuery, weeklyHoursQuery, WEEKLY_HOURS_REFRESH_MS, type TaskMetrics } from "@/api/metrics-history";
import { overviewQuery, type Overview } from "@/api/overview";
import { useSession } from "@/api/session";
import { VerdictLine } from "@/components/attention/verdict-line";
import { Button } from "@/components/buttons";
import { SelectField } from "@/components/form-fields";
import { ErrorState, QueryContent, LoadingState } from "@/components/loading-empty-error-states";
import { GettingStarted } from "@/components/overview/getting-started";
import { HoursOfWeekHeatmap } from "@/components/overview/hours-of-week-heatmap";
import { QueueTable } from "@/components/overview/queue-table";
import { SlowestOrFailingTasksTable } from "@/components/overview/slowest-or-failing-tasks-table";
import { SummaryTiles } from "@/components/overview/summary-tiles";
import { PageLayout } from "@/components/page-layout";
import { Panel } from "@/components/panel";
import { ChartControls } from "@/components/metrics/chart-controls";
import { SegmentedControl } from "@/components/segmented-control";
import { chartPeriod } from "@/lib/chart-period";
import { formatBytes } from "@/lib/format-number";
import { WEEKS } from "@/lib/heatmap-hours";
import { useTimeZone } from "@/lib/time-zone-setting";
import { useInView } from "@/lib/use-in-view";
import { usePausablePolling, usePausableQuery } from "@/live/use-pausable-polling";
import { AttentionPanel } from "@/routes/attention-panel";
import { MetricsCharts } from "@/routes/metrics-charts";
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
  const zone = useTimeZone();
  const period = chartPeriod(search, Date.parse(overview.at), zone);
  // A token limited to some queues has no access to the history of all queues.
  const queue = search.queue ?? session.queues[0];
  const { words } = period;
  const polling = usePausablePolling(period.everyMs === false ? WEEKLY_HOURS_REFRESH_MS : period.everyMs);
  const refetchInterval = period.everyMs === false ? false : polling;
  const slowest = useQuery({ ...taskMetricsQuery("slowest", period, queue), refetchInterval });
  const failing = useQuery({ ...taskMetricsQuery("failing", period, queue), refetchInterval });
  const names = overview.queues.map(({ name }) => name);

  function show(change: OverviewSearch) {
    void navigate({ search: (before) => ({ ...before, ...change }), replace: true, resetScroll: false });
  }

  return (
    <PageLayout title="Overview" lead={overview.server ? <StoreSummary server={overview.server} /> : undefined}>
      <VerdictLine verdict={overview.verdict} />
      <AttentionPanel findings={overview.attention} />
      <SummaryTiles overview={overview} />
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
          <ChartControls search={search} onChange={show} />
        </div>
      </div>
      <MetricsCharts scope={{ queue }} period={period} search={search} onChange={show} />
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
