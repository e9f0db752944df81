/** Refreshes the queries that are affected by the server's change events. */

import type { Query, QueryClient } from "@tanstack/react-query";

import { removalKey } from "@/api/query-keys";
import { serverNow } from "@/lib/server-clock";

/**
 * Some runs of a queue went through a transition, the verb. `runs` lists the first fifty. Where the verb is "schedule",
 * "worker" or "workflow", they are the ids of those that changed, and the queue is "~". With "scaling" the autoscaler has
 * decided, or its settings were changed.
 */
export interface Change {
  readonly queue: string;
  readonly verb: string;
  readonly count: number;
  readonly runs: readonly string[];
  readonly at: string;
}

/** A query declares which changes affect it: `meta: { live: (change) => change.queue === queue }`. */
export type ChangePredicate = (change: Change) => boolean;

export const NO_QUEUE = "~";

/** True for changes of jobs or queues; progress and log lines are frequent and change no state. */
export function isStateChange({ queue, verb }: Change): boolean {
  return queue !== NO_QUEUE && verb !== "progress" && verb !== "log";
}

declare module "@tanstack/react-query" {
  interface Register {
    queryMeta: { live?: ChangePredicate };
  }
}

/**
 * A query is refreshed at once, and then at most this often while changes continue: data is less than a second old,
 * at little cost for the store.
 */
export const REFRESH_INTERVAL_MS = 500;
const RETRY_MS = 100;

/** Refreshes the queries that a batch of changes affects, each at its own pace. */
export class QueryRefresher {
  private readonly lastRefresh = new WeakMap<Query, number>();
  private readonly scheduled = new Map<Query, ReturnType<typeof setTimeout>>();

  constructor(private readonly client: QueryClient) {}

  apply(changes: readonly Change[]): void {
    for (const query of this.client.getQueryCache().findAll({ type: "active" })) {
      const concerns = query.meta?.live;
      if (!concerns || this.client.isMutating({ mutationKey: removalKey(query.queryKey) }) > 0) continue;
      if (changes.some(concerns)) this.refresh(query);
    }
  }

  /** Events may have been missed: refreshes every live query. */
  applyUnknown(): void {
    const unknown = { queue: "", verb: "", count: 0, runs: [], at: new Date(serverNow()).toISOString() };
    for (const query of this.client.getQueryCache().findAll({ type: "active" })) {
      if (!query.meta?.live) continue;
      query.meta.live(unknown);
      this.refresh(query);
    }
  }

  stop(): void {
    this.scheduled.forEach((timer) => clearTimeout(timer));
    this.scheduled.clear();
  }

  private refresh(query: Query): void {
    if (this.scheduled.has(query)) return;
    const since = performance.now() - (this.lastRefresh.get(query) ?? -REFRESH_INTERVAL_MS);
    const read = () => {
      if (query.state.fetchStatus === "fetching") {
        // The running request may have started before the change.
        this.scheduled.set(query, setTimeout(read, RETRY_MS));
        return;
      }
      this.scheduled.delete(query);
      this.lastRefresh.set(query, performance.now());
      void this.client.invalidateQueries({ queryKey: query.queryKey, exact: true }, { cancelRefetch: false });
    };
    if (since >= REFRESH_INTERVAL_MS) read();
    else this.scheduled.set(query, setTimeout(read, REFRESH_INTERVAL_MS - since));
  }
}
