import { CloudOff, Pause, Play } from "lucide-react";

import { classes } from "@/lib/classes";
import { useLive } from "@/live/live";
import type { Status } from "@/live/stream";

const WORDS: Record<Status, string> = { connecting: "connecting", live: "live", paused: "paused", lost: "offline" };
const MARKS: Record<Status, string> = {
  connecting: "bg-blocked",
  live: "bg-completed",
  paused: "bg-cancelled",
  lost: "bg-failed",
};

/** How fresh the page is; pressing it holds everything still, and pressing again goes on. */
export function LiveStatus() {
  const { status, setPaused } = useLive();
  const isPaused = status === "paused";
  const Icon = isPaused ? Play : Pause;
  return (
    <button
      type="button"
      onClick={() => setPaused(!isPaused)}
      aria-pressed={isPaused}
      title={isPaused ? "Go on updating" : "Hold everything still"}
      className="flex h-8 items-center gap-2 rounded-md px-2 text-[13px] text-muted hover:bg-sunken hover:text-text"
    >
      <span aria-hidden className={classes("size-2 rounded-full forced-color-adjust-none", MARKS[status])} />
      <span role="status" className="hidden sm:inline">
        {WORDS[status]}
      </span>
      <span className="sr-only">{isPaused ? "Go on updating" : "Hold everything still"}</span>
      <Icon aria-hidden className="size-3.5" />
    </button>
  );
}

/** What is shown may be old: nobody should act on it without knowing. */
export function LostBanner() {
  const { status } = useLive();
  if (status !== "lost") return null;
  return (
    <div role="alert" className="flex items-center gap-2 border-b bg-failed-soft px-4 py-2 text-failed md:px-6">
      <CloudOff aria-hidden className="size-4 shrink-0" />
      Connection lost: what you see may be old. Trying to reconnect.
    </div>
  );
}
