/** Search params of the jobs page: the filter and the order. */

import { JOB_STATES } from "@/lib/job-and-workflow-states";
import { parseTime, type Filter } from "@/lib/job-filter";
import { oneOfParam, textParam } from "@/lib/parse-search-params";

export const ORDERS = ["newest", "oldest"] as const;

export interface JobsSearch extends Filter {
  /** Default by state: next to start, or newest first. */
  readonly order?: (typeof ORDERS)[number];
}

/** The filter and the order of the list. For a token limited to some queues the first one is the default. */
export function toListQuery(
  { order, ...given }: JobsSearch,
  queues: readonly string[],
): { filter: Filter; order: JobsSearch["order"] } {
  const [only] = queues;
  return { filter: given.queue === undefined && only !== undefined ? { ...given, queue: only } : given, order };
}

const MAX_FIELDS = 10;

export function readJobsSearch(search: Record<string, unknown>): JobsSearch {
  const state = typeof search.state === "string" ? search.state.toUpperCase() : undefined;
  const given = {
    state: oneOfParam(state, JOB_STATES),
    queue: textParam(search.queue),
    task: textParam(search.task ?? search.type),
    tag: textParam(search.tag),
    worker: textParam(search.worker),
    error: textParam(search.error),
    group: textParam(search.group),
    field: fieldsParam(search.field),
    since: timeParam(search.since),
    until: timeParam(search.until),
    text: textParam(search.text),
    order: oneOfParam(search.order, ORDERS),
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

function timeParam(value: unknown): string | undefined {
  const text = textParam(value, 64);
  return text !== undefined && parseTime(text, 0) !== null ? text : undefined;
}

function fieldsParam(value: unknown): readonly string[] | undefined {
  const given = (Array.isArray(value) ? value : [value])
    .map((one) => textParam(one, 500))
    .filter((one): one is string => one !== undefined && one.indexOf("=") > 0);
  return given.length > 0 ? given.slice(0, MAX_FIELDS) : undefined;
}
