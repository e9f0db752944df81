/** What the server says has happened, and which queries that concerns. */

import type { Query, QueryClient } from "@tanstack/react-query";

import { removalOf } from "@/api/keys";
import { serverNow } from "@/lib/now";

/**
 * Some runs of a queue went through a verb. `runs` names the first fifty. Where the verb is "schedule", "worker" or
 * "workflow", they are the ids of those that changed, and the queue is "~".
 */
export interface Change {
  readonly queue: string;
  readonly verb: string;
  readonly count: number;
  readonly runs: readonly string[];
  readonly at: string;
}

/** A query says which changes make it old: `meta: { live: (change) => change.queue === queue }`. */
export type Concern = (change: Change) => boolean;

export const EVERYWHERE = "~";

/** True for what moves jobs or queues on; progress and log lines come often and move nothing. */
export function moves({ queue, verb }: Change): boolean {
  return queue !== EVERYWHERE && verb !== "progress" && verb !== "log";
}

declare module "@tanstack/react-query" {
  interface Register {
    queryMeta: { live?: Concern };
  }
}

/**
 * A query is read again at once, and then no more often than this while changes go on: what is shown is less than a second
 * old, and whoever looks costs the store little.
 */
export const PACE_MS = 500;
const BUSY_MS = 100;

/** Marks the queries that a batch of changes concerns, each at its own pace. */
export class Freshener {
  private readonly lastRead = new WeakMap<Query, number>();
  private readonly waiting = new Map<Query, ReturnType<typeof setTimeout>>();

  constructor(private readonly client: QueryClient) {}

  apply(changes: readonly Change[]): void {
    for (const query of this.client.getQueryCache().findAll({ type: "active" })) {
      const concerns = query.meta?.live;
      if (!concerns || this.client.isMutating({ mutationKey: removalOf(query.queryKey) }) > 0) continue;
      if (changes.some(concerns)) this.refresh(query);
    }
  }

  /** Something may have happened that nothing told of: all that changes while one looks is read again. */
  applyUnknown(): void {
    const unknown = { queue: "", verb: "", count: 0, runs: [], at: new Date(serverNow()).toISOString() };
    for (const query of this.client.getQueryCache().findAll({ type: "active" })) {
      if (!query.meta?.live) continue;
      query.meta.live(unknown);
      this.refresh(query);
    }
  }

  stop(): void {
    this.waiting.forEach((timer) => clearTimeout(timer));
    this.waiting.clear();
  }

  private refresh(query: Query): void {
    if (this.waiting.has(query)) return;
    const since = performance.now() - (this.lastRead.get(query) ?? -PACE_MS);
    const read = () => {
      if (query.state.fetchStatus === "fetching") {
        // What is being read may be older than the change.
        this.waiting.set(query, setTimeout(read, BUSY_MS));
        return;
      }
      this.waiting.delete(query);
      this.lastRead.set(query, performance.now());
      void this.client.invalidateQueries({ queryKey: query.queryKey, exact: true }, { cancelRefetch: false });
    };
    if (since >= PACE_MS) read();
    else this.waiting.set(query, setTimeout(read, PACE_MS - since));
  }
}
