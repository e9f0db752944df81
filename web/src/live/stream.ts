/** One stream of events per tab. It closes when nobody looks, and goes on exactly where it was. */

import { BASE } from "@/api/client";
import { EVERYWHERE, type Change } from "@/live/changes";

export type Status = "connecting" | "live" | "paused" | "lost";

interface Callbacks {
  onChanges(changes: readonly Change[]): void;
  /** What was missed cannot be told. */
  onReset(): void;
  onStatus(status: Status): void;
}

const RETRY_MS = [500, 1000, 2000, 5000] as const;

export class Stream {
  private source: EventSource | null = null;
  private lastId = "";
  private failures = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private isPaused = false;

  constructor(
    private readonly topics: string,
    private readonly callbacks: Callbacks,
  ) {}

  start(): void {
    document.addEventListener("visibilitychange", this.look);
    this.look();
  }

  stop(): void {
    document.removeEventListener("visibilitychange", this.look);
    this.close();
  }

  setPaused(isPaused: boolean): void {
    this.isPaused = isPaused;
    this.look();
  }

  private readonly look = (): void => {
    if (this.isPaused) {
      this.close();
      this.callbacks.onStatus("paused");
    } else if (document.hidden) {
      this.close();
    } else if (this.source === null) {
      this.open();
    }
  };

  private open(): void {
    clearTimeout(this.timer);
    const url = new URL("api/events", BASE);
    url.searchParams.set("topics", this.topics);
    if (this.lastId) url.searchParams.set("after", this.lastId);
    const source = new EventSource(url);
    this.source = source;
    if (this.failures === 0) this.callbacks.onStatus("connecting");
    source.onopen = () => {
      // Whoever has heard of nothing yet does not know where to go on; and what was read before this may be old already.
      if (!this.lastId) this.callbacks.onReset();
      this.failures = 0;
      this.callbacks.onStatus("live");
    };
    source.addEventListener("changes", (event: MessageEvent<string>) => {
      this.lastId = event.lastEventId;
      this.callbacks.onChanges(read(JSON.parse(event.data) as Message));
    });
    source.addEventListener("reset", (event: MessageEvent<string>) => {
      this.lastId = event.lastEventId;
      this.callbacks.onReset();
    });
    source.onerror = () => {
      // The browser would try again by itself, but not after a refusal; and it would not say since when.
      this.close();
      const wait = RETRY_MS[Math.min(this.failures, RETRY_MS.length - 1)];
      this.failures += 1;
      if (this.failures > 1) this.callbacks.onStatus("lost");
      this.timer = setTimeout(this.look, wait);
    };
  }

  private close(): void {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }
}

interface Message {
  readonly changes: readonly Change[];
  readonly schedules?: readonly string[];
  readonly workers?: readonly string[];
  readonly workflows?: readonly string[];
}

/** What a message tells of, also beside the changes of jobs. */
function read({ changes, schedules = [], workers = [], workflows = [] }: Message): readonly Change[] {
  const told = (verb: string, runs: readonly string[]): Change[] =>
    runs.length > 0 ? [{ queue: EVERYWHERE, verb, count: runs.length, runs, at: "" }] : [];
  return [...changes, ...told("schedule", schedules), ...told("worker", workers), ...told("workflow", workflows)];
}
