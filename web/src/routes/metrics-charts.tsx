/** The charts of a page: throughput, waiting and running time of all jobs, of a queue, or of a task. */

import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";

import { annotationsQuery } from "@/api/annotations";
import { metricsHistoryQuery, type MetricsScope } from "@/api/metrics-history";
import type { ChartMark, TimeSpan } from "@/components/charts/chart-types";
import { QueryContent } from "@/components/loading-empty-error-states";
import { PickedMoment } from "@/components/metrics/chart-controls";
import { LatencyChart, ThroughputChart, type ChartContext } from "@/components/metrics/throughput-and-latency-charts";
import { Panel } from "@/components/panel";
import type { ChartPeriod, ChartSearch } from "@/lib/chart-period";
import { formatPercent, formatShort } from "@/lib/format-number";
import { usePausablePolling, usePausableQuery } from "@/live/use-pausable-polling";

interface MetricsChartsProps {
  scope: MetricsScope;
  period: ChartPeriod;
  search: ChartSearch;
  onChange: (change: ChartSearch) => void;
}

/** Of a period that is over: only later corrections would change it. */
const NEVER_MS = 86_400_000;

export function MetricsCharts({ scope, period, search, onChange }: MetricsChartsProps) {
  const polling = usePausablePolling(period.everyMs === false ? NEVER_MS : period.everyMs);
  const history = useQuery({
    ...metricsHistoryQuery(period, scope, search.compare),
    refetchInterval: period.everyMs === false ? false : polling,
    placeholderData: (before) => before,
  });
  const [picked, setPicked] = useState<TimeSpan | null>(null);
  const total = history.data?.total;
  const marks = useMarks(history.data?.since, scope.queue);

  function zoom({ from, until }: TimeSpan) {
    setPicked(null);
    onChange({ from: new Date(from).toISOString(), until: new Date(until).toISOString(), range: undefined });
  }

  const context = (data: ChartContext["history"]): ChartContext => ({
    history: data,
    compare: search.compare,
    marks,
    picked,
    onPick: setPicked,
    onZoom: zoom,
  });
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
          {(data) => <ThroughputChart context={context(data)} label={`Throughput, ${period.words}`} />}
        </QueryContent>
        <PickedMoment picked={picked} scope={scope} onZoom={zoom} onClear={() => setPicked(null)} />
      </Panel>
      <div className="grid gap-4 lg:grid-cols-2">
        <Panel title="Waiting time">
          <QueryContent query={history} lines={6}>
            {(data) => <LatencyChart context={context(data)} of="wait" label={`Waiting time, ${period.words}`} />}
          </QueryContent>
        </Panel>
        <Panel title="Running time">
          <QueryContent query={history} lines={6}>
            {(data) => <LatencyChart context={context(data)} of="run" label={`Running time, ${period.words}`} />}
          </QueryContent>
        </Panel>
      </div>
    </>
  );
}

const HOUR_MS = 3_600_000;

/** The deploys and notes since the charts begin; whole hours, so that the query stays the same. */
function useMarks(since: string | undefined, queue: string | undefined): readonly ChartMark[] {
  const from = since === undefined ? undefined : new Date(Math.floor(Date.parse(since) / HOUR_MS) * HOUR_MS);
  const annotations = useQuery(
    usePausableQuery({ ...annotationsQuery(from?.toISOString() ?? "", queue), enabled: from !== undefined }),
  ).data;
  return useMemo(
    () =>
      (annotations ?? []).map(({ at, kind, text, version }) => ({
        at: Date.parse(at),
        text: kind === "deploy" ? `deploy ${version ?? text}` : text,
      })),
    [annotations],
  );
}
