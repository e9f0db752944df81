/** The event stream of a tab. Closes while the tab is hidden, and resumes after the last event. */

import { BASE } from "@/api/http-client";
import { NO_QUEUE, type Change } from "@/live/query-refresher";

/** "stalled": the server is connected, but the store does not respond. */
export type Status = "connecting" | "live" | "paused" | "stalled" | "lost";

interface Callbacks {
  onChanges(changes: readonly Change[]): void;
  /** Events were missed and cannot be replayed. */
  onReset(): void;
  onStatus(status: Status): void;
}

const RETRY_MS = [500, 1000, 2000, 5000] as const;

export class EventStream {
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
    document.addEventListener("visibilitychange", this.updateConnection);
    this.updateConnection();
  }

  stop(): void {
    document.removeEventListener("visibilitychange", this.updateConnection);
    this.close();
  }

  setPaused(isPaused: boolean): void {
    this.isPaused = isPaused;
    this.updateConnection();
  }

  private readonly updateConnection = (): void => {
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
      // Without a last event id the stream cannot resume, and data read before may be stale.
      if (!this.lastId) this.callbacks.onReset();
      this.failures = 0;
      this.callbacks.onStatus("live");
    };
    source.addEventListener("changes", (event: MessageEvent<string>) => {
      this.lastId = event.lastEventId;
      this.callbacks.onChanges(toChanges(JSON.parse(event.data) as Message));
    });
    source.addEventListener("reset", (event: MessageEvent<string>) => {
      this.lastId = event.lastEventId;
      this.callbacks.onReset();
    });
    source.addEventListener("store", (event: MessageEvent<string>) => {
      const { is_responding: isResponding } = JSON.parse(event.data) as { is_responding: boolean };
      this.callbacks.onStatus(isResponding ? "live" : "stalled");
    });
    source.onerror = () => {
      // The browser reconnects by itself, but not after an HTTP error, and does not report the loss.
      this.close();
      const wait = RETRY_MS[Math.min(this.failures, RETRY_MS.length - 1)];
      this.failures += 1;
      if (this.failures > 1) this.callbacks.onStatus("lost");
      this.timer = setTimeout(this.updateConnection, wait);
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
  readonly scaling?: readonly string[];
}

/** The changes of a message, including those of schedules, workers, workflows and the autoscaler. */
function toChanges({
  changes,
  schedules = [],
  workers = [],
  workflows = [],
  scaling = [],
}: Message): readonly Change[] {
  const idChanges = (verb: string, runs: readonly string[]): Change[] =>
    runs.length > 0 ? [{ queue: NO_QUEUE, verb, count: runs.length, runs, at: "" }] : [];
  return [
    ...changes,
    ...idChanges("schedule", schedules),
    ...idChanges("worker", workers),
    ...idChanges("workflow", workflows),
    ...idChanges("scaling", scaling),
  ];
}
