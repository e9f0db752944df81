/** What the URL of this page can say. */

import type { Range } from "@/api/overview";
import { oneOf, text } from "@/lib/search";

export interface OverviewSearch {
  /** How far the charts reach back; an hour where nothing is said. */
  readonly range?: Exclude<Range, "hour">;
  /** Charts of this queue alone. */
  readonly queue?: string;
  /** What the hours of the week are coloured by; completed jobs where nothing is said. */
  readonly hours?: "failed";
}

export function readOverviewSearch(search: Record<string, unknown>): OverviewSearch {
  return {
    range: oneOf(search.range, ["day", "month"]),
    queue: text(search.queue),
    hours: oneOf(search.hours, ["failed"]),
  };
}
