/** Search params of the task page. */

import { readChartSearch, type ChartSearch } from "@/lib/chart-period";
import { textParam } from "@/lib/parse-search-params";

export interface TaskSearch extends ChartSearch {
  /** Only jobs in this queue; all queues by default. */
  readonly queue?: string;
}

export function readTaskSearch(search: Record<string, unknown>): TaskSearch {
  return { ...readChartSearch(search), queue: textParam(search.queue) };
}
