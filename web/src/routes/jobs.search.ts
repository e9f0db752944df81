/** What the URL of the jobs' page can say: the filter, and in which order. */

import { timeOf, type Filter } from "@/lib/filter";
import { oneOf, text } from "@/lib/search";
import { JOB_STATES } from "@/lib/states";

export const ORDERS = ["newest", "oldest"] as const;

export interface JobsSearch extends Filter {
  /** Else as fits the state: as they will start, or the latest first. */
  readonly order?: (typeof ORDERS)[number];
}

/** Which jobs are asked for, and in which order. Whoever is limited to some queues has to name one: the first is meant. */
export function listOf(
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
    state: oneOf(state, JOB_STATES),
    queue: text(search.queue),
    task: text(search.task ?? search.type),
    tag: text(search.tag),
    worker: text(search.worker),
    error: text(search.error),
    group: text(search.group),
    field: fields(search.field),
    since: moment(search.since),
    until: moment(search.until),
    text: text(search.text),
    order: oneOf(search.order, ORDERS),
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

function moment(value: unknown): string | undefined {
  const said = text(value, 64);
  return said !== undefined && timeOf(said, 0) !== null ? said : undefined;
}

function fields(value: unknown): readonly string[] | undefined {
  const given = (Array.isArray(value) ? value : [value])
    .map((one) => text(one, 500))
    .filter((one): one is string => one !== undefined && one.indexOf("=") > 0);
  return given.length > 0 ? given.slice(0, MAX_FIELDS) : undefined;
}
