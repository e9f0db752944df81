import { CloudOff } from "lucide-react";

import { useLive } from "@/live/live-provider";

/** Warns that the data may be out of date. */
export function ConnectionLostBanner() {
  const { status } = useLive();
  if (status !== "lost" && status !== "stalled") return null;
  return (
    <div role="alert" className="flex items-center gap-2 border-b bg-failed-soft px-4 py-2 text-failed md:px-6">
      <CloudOff aria-hidden className="size-4 shrink-0" />
      {status === "lost" ? "Connection lost." : "The store does not respond."} The data may be out of date.
      Reconnecting…
    </div>
  );
}
