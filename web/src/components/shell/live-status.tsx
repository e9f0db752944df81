import { Pause, Play } from "lucide-react";

import { classNames } from "@/lib/class-names";
import type { Status } from "@/live/event-stream";
import { useLive } from "@/live/live-provider";

const STATUS_LABELS: Record<Status, string> = {
  connecting: "connecting",
  live: "live",
  paused: "paused",
  stalled: "store not responding",
  lost: "offline",
};

const STATUS_COLORS: Record<Status, string> = {
  connecting: "bg-blocked",
  live: "bg-completed",
  paused: "bg-cancelled",
  stalled: "bg-failed",
  lost: "bg-failed",
};

/** Shows the status of the live updates; a click pauses and resumes them. */
export function LiveStatus() {
  const { status, setPaused } = useLive();
  const isPaused = status === "paused";
  const Icon = isPaused ? Play : Pause;
  return (
    <button
      type="button"
      onClick={() => setPaused(!isPaused)}
      aria-pressed={isPaused}
      title={isPaused ? "Resume live updates" : "Pause live updates"}
      className="flex h-8 items-center gap-2 rounded-md px-2 text-[13px] text-muted hover:bg-sunken hover:text-text"
    >
      <span aria-hidden className={classNames("size-2 rounded-full forced-color-adjust-none", STATUS_COLORS[status])} />
      <span role="status" className="hidden sm:inline">
        {STATUS_LABELS[status]}
      </span>
      <span className="sr-only">{isPaused ? "Resume live updates" : "Pause live updates"}</span>
      <Icon aria-hidden className="size-3.5" />
    </button>
  );
}
