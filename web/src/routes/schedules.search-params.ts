/** Search params of the schedules page. */

import { oneOfParam, textParam } from "@/lib/parse-search-params";

export interface SchedulesSearch {
  /** Part of a name or a task. */
  readonly text?: string;
  /** Time zone of the next runs; by default each schedule's own. */
  readonly zone?: "local" | "utc";
}

export function readSchedulesSearch(search: Record<string, unknown>): SchedulesSearch {
  return { text: textParam(search.text), zone: oneOfParam(search.zone, ["local", "utc"]) };
}
