import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";

import {
  historyQuery,
  overviewQuery,
  RANGES,
  tasksQuery,
  type History,
  type Overview,
  type Range,
  type TaskFigures,
  weeksQuery,
  WEEKS_MS,
} from "@/api/overview";
import { useSession } from "@/api/session";
import { Button } from "@/components/button";
import { Choice } from "@/components/choice";
import { SelectField } from "@/components/field";
import { Failure, Loaded, Loading } from "@/components/looks";
import { AttentionList } from "@/components/overview/attention";
import { FirstRun } from "@/components/overview/first-run";
import { Spans, Throughput } from "@/components/overview/history";
import { QueueTable } from "@/components/overview/queue-table";
import { TaskTable } from "@/components/overview/task-table";
import { OverviewTiles } from "@/components/overview/tiles";
import { WeekHours } from "@/components/overview/week-hours";
import { Page } from "@/components/page";
import { Panel } from "@/components/panel";
import { WEEKS } from "@/lib/hours";
import { bytes, percent, short } from "@/lib/numbers";
import { useSeen } from "@/lib/seen";
import { usePolling, useWhileLive } from "@/live/polling";
import type { OverviewSearch } from "@/routes/overview.search";

const route = getRouteApi("/inside/");

export function OverviewRoute() {
  const overview = useQuery(useWhileLive(overviewQuery));
  if (overview.data === undefined) {
    return (
      <Page title="Overview">
        {overview.error ? (
          <Failure error={overview.error} onRetry={() => void overview.refetch()} />
        ) : (
          <Loading lines={8} />
        )}
      </Page>
    );
  }
  if (overview.data.queues.length === 0) {
    return (
      <Page title="Overview">
        <FirstRun />
      </Page>
    );
  }
  return <Filled overview={overview.data} />;
}

function Filled({ overview }: { overview: Overview }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const session = useSession();
  const range = search.range ?? "hour";
  // A token for some queues sees no history of all of them.
  const queue = search.queue ?? session.queues[0];
  const { words, everyMs } = RANGES[range];
  const refetchInterval = usePolling(everyMs);
  const history = useQuery({ ...historyQuery(range, queue), refetchInterval, placeholderData: (before) => before });
  const slowest = useQuery({ ...tasksQuery("slowest", range, queue), refetchInterval });
  const failing = useQuery({ ...tasksQuery("failing", range, queue), refetchInterval });
  const names = overview.queues.map(({ name }) => name);

  function show(change: OverviewSearch) {
    void navigate({ search: (before) => ({ ...before, ...change }), replace: true, resetScroll: false });
  }

  return (
    <Page title="Overview" lead={overview.server ? <ServerLine server={overview.server} /> : undefined}>
      <OverviewTiles overview={overview} />
      <AttentionList attention={overview.attention} />
      <Panel
        title="Queues"
        isFlush
        actions={
          <Button look="quiet" asChild>
            <Link to="/queues">All queues</Link>
          </Button>
        }
      >
        <QueueTable queues={overview.queues} at={overview.at} />
      </Panel>
      <div className="flex flex-wrap items-center justify-between gap-2">
        <h2 className="text-base font-semibold">How it went</h2>
        <div className="flex flex-wrap items-center gap-2">
          <SelectField
            label="Queue"
            isLabelHidden
            value={queue ?? ""}
            onChange={(chosen) => show({ queue: chosen === "" ? undefined : chosen })}
            options={[
              ...(session.queues.length === 0 ? [{ value: "", label: "All queues" }] : []),
              ...names.map((name) => ({ value: name, label: name })),
            ]}
            className="w-40"
          />
          <Choice
            label="Range"
            value={range}
            onChange={(chosen) => show({ range: chosen === "hour" ? undefined : chosen })}
            options={(Object.keys(RANGES) as Range[]).map((value) => ({ value, label: RANGES[value].label }))}
          />
        </div>
      </div>
      <Charts history={history} words={words} />
      <div className="grid gap-4 lg:grid-cols-2">
        <Tasks title="Slowest tasks" order="slowest" query={slowest} words={words} />
        <Tasks title="Most failing tasks" order="failing" query={failing} words={words} />
      </div>
      <Weeks queue={queue} of={search.hours ?? "completed"} onChange={(hours) => show({ hours })} />
    </Page>
  );
}

function ServerLine({ server }: { server: NonNullable<Overview["server"]> }) {
  const limit = server.maxmemory === null ? "" : ` of ${bytes(server.maxmemory)}`;
  return (
    <span className="figures text-xs">
      {server.server}, {bytes(server.used_memory)}
      {limit} used{server.is_aof_on === false && ", not writing to disk"}
    </span>
  );
}

function Charts({ history, words }: { history: UseQueryResult<History>; words: string }) {
  const total = history.data?.total;
  return (
    <>
      <Panel
        title="Throughput"
        actions={
          total && (
            <span className="figures text-xs text-muted">
              {short(total.completed)} completed, {short(total.failed)} failed
              {total.failure_rate !== null && total.failed > 0 && ` (${percent(total.failure_rate)})`}
            </span>
          )
        }
      >
        <Loaded query={history} lines={6}>
          {(data) => <Throughput history={data} label={`Throughput, ${words}`} />}
        </Loaded>
      </Panel>
      <div className="grid gap-4 lg:grid-cols-2">
        <Panel title="Waiting time">
          <Loaded query={history} lines={6}>
            {(data) => <Spans history={data} of="wait" label={`Waiting time, ${words}`} />}
          </Loaded>
        </Panel>
        <Panel title="Running time">
          <Loaded query={history} lines={6}>
            {(data) => <Spans history={data} of="run" label={`Running time, ${words}`} />}
          </Loaded>
        </Panel>
      </div>
    </>
  );
}

interface WeeksProps {
  queue: string | undefined;
  of: "completed" | "failed";
  onChange: (of: OverviewSearch["hours"]) => void;
}

/** Read only while it can be seen: it stands at the end of the page, and its answer is long. */
function Weeks({ queue, of, onChange }: WeeksProps) {
  const [ref, isSeen] = useSeen<HTMLDivElement>();
  const hours = useQuery({ ...weeksQuery(queue), enabled: isSeen, refetchInterval: usePolling(WEEKS_MS) });
  return (
    <div ref={ref}>
      <Panel
        title={`By weekday and hour, the last ${WEEKS} weeks`}
        actions={
          <Choice
            label="Show"
            value={of}
            onChange={(chosen) => onChange(chosen === "completed" ? undefined : chosen)}
            options={[
              { value: "completed", label: "Completed" },
              { value: "failed", label: "Failed" },
            ]}
          />
        }
      >
        {isSeen || hours.data !== undefined ? (
          <Loaded query={hours} lines={7}>
            {(data) => <WeekHours hours={data} of={of} />}
          </Loaded>
        ) : (
          <div className="h-56" />
        )}
      </Panel>
    </div>
  );
}

interface TasksProps {
  title: string;
  order: "slowest" | "failing";
  query: UseQueryResult<TaskFigures[]>;
  words: string;
}

function Tasks({ title, order, query, words }: TasksProps) {
  return (
    <Panel title={title} isFlush>
      <Loaded query={query} lines={4}>
        {(tasks) => {
          const shown = tasks.filter((task) => (order === "slowest" ? task.run.p95_ms !== null : task.failed > 0));
          if (shown.length > 0) return <TaskTable label={title} tasks={shown} order={order} />;
          return (
            <p className="px-4 py-6 text-center text-muted">
              {order === "slowest" ? `No job ended in ${words}.` : `No attempt failed in ${words}.`}
            </p>
          );
        }}
      </Loaded>
    </Panel>
  );
}
