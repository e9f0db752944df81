/** What the URL of this page can say. */

import { oneOf, text } from "@/lib/search";

export interface SchedulesSearch {
  /** Part of a name or a task. */
  readonly text?: string;
  /** Where the next runs are told: each schedule's own zone where nothing is said. */
  readonly zone?: "local" | "utc";
}

export function readSchedulesSearch(search: Record<string, unknown>): SchedulesSearch {
  return { text: text(search.text), zone: oneOf(search.zone, ["local", "utc"]) };
}
