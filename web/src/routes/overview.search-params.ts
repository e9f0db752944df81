/** Search params of the overview page. */

import { readChartSearch, type ChartSearch } from "@/lib/chart-period";
import { oneOfParam, textParam } from "@/lib/parse-search-params";

export interface OverviewSearch extends ChartSearch {
  /** Limits the charts to this queue. */
  readonly queue?: string;
  /** Metric of the weekly heatmap; completed jobs by default. */
  readonly hours?: "failed";
}

export function readOverviewSearch(search: Record<string, unknown>): OverviewSearch {
  return {
    ...readChartSearch(search),
    queue: textParam(search.queue),
    hours: oneOfParam(search.hours, ["failed"]),
  };
}
