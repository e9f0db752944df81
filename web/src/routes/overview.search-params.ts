/** Search params of the overview page. */

import type { Range } from "@/api/metrics-history";
import { oneOfParam, textParam } from "@/lib/parse-search-params";

export interface OverviewSearch {
  /** Range of the charts; one hour by default. */
  readonly range?: Exclude<Range, "hour">;
  /** Limits the charts to this queue. */
  readonly queue?: string;
  /** Metric of the weekly heatmap; completed jobs by default. */
  readonly hours?: "failed";
}

export function readOverviewSearch(search: Record<string, unknown>): OverviewSearch {
  return {
    range: oneOfParam(search.range, ["day", "month"]),
    queue: textParam(search.queue),
    hours: oneOfParam(search.hours, ["failed"]),
  };
}
