/** Search params of the scaling page. */

import type { Range } from "@/lib/chart-period";
import { oneOfParam } from "@/lib/parse-search-params";

export interface ScalingSearch {
  /** Range of the charts; one hour by default. */
  readonly range?: Exclude<Range, "hour">;
}

export function readScalingSearch(search: Record<string, unknown>): ScalingSearch {
  return { range: oneOfParam(search.range, ["day", "month"]) };
}
