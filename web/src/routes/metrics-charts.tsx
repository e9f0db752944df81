/** The charts of a page: throughput, waiting and running time of all jobs, of a queue, or of a task. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { metricsHistoryQuery, type MetricsScope } from "@/api/metrics-history";
import type { ChartMark, TimeSpan } from "@/components/charts/chart-types";
import { QueryContent } from "@/components/loading-empty-error-states";
import { PickedMoment } from "@/components/metrics/chart-controls";
import { LatencyChart, ThroughputChart, type ChartContext } from "@/components/metrics/throughput-and-latency-charts";
import { Panel } from "@/components/panel";
import type { ChartPeriod, ChartSearch } from "@/lib/chart-period";
import { formatPercent, formatShort } from "@/lib/format-number";
import { usePausablePolling } from "@/live/use-pausable-polling";

interface MetricsChartsProps {
  scope: MetricsScope;
  period: ChartPeriod;
  search: ChartSearch;
}

const NO_MARKS: readonly ChartMark[] = [];
/** Of a period that is over: only later corrections would change it. */
const NEVER_MS = 86_400_000;

export function MetricsCharts({ scope, period, search }: MetricsChartsProps) {
  const polling = usePausablePolling(period.everyMs === false ? NEVER_MS : period.everyMs);
  const history = useQuery({
    ...metricsHistoryQuery(period, scope, search.compare),
    refetchInterval: period.everyMs === false ? false : polling,
    placeholderData: (before) => before,
  });
  const [picked, setPicked] = useState<TimeSpan | null>(null);
  const total = history.data?.total;

  const context = (data: ChartContext["history"]): ChartContext => ({
    history: data,
    compare: search.compare,
    marks: NO_MARKS,
    picked,
    onPick: setPicked,
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
        <PickedMoment picked={picked} scope={scope} onClear={() => setPicked(null)} />
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
