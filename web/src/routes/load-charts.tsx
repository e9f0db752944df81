/** The charts of the queue page and the task page, with their controls. */

import type { MetricsScope } from "@/api/metrics-history";
import { ChartControls } from "@/components/metrics/chart-controls";
import { chartPeriod, type ChartSearch } from "@/lib/chart-period";
import { useTimeZone } from "@/lib/time-zone-setting";
import { MetricsCharts } from "@/routes/metrics-charts";

interface LoadChartsProps {
  scope: MetricsScope;
  search: ChartSearch;
  /** Time of the store. */
  at: string;
  onChange: (change: ChartSearch) => void;
}

export function LoadCharts({ scope, search, at, onChange }: LoadChartsProps) {
  const period = chartPeriod(search, Date.parse(at), useTimeZone());
  return (
    <>
      <div className="flex flex-wrap items-center justify-between gap-2">
        <h2 className="text-base font-semibold">History</h2>
        <ChartControls search={search} onChange={onChange} />
      </div>
      <MetricsCharts scope={scope} period={period} search={search} onChange={onChange} />
    </>
  );
}
