import { Pause as PauseIcon } from "lucide-react";

import type { Pause } from "@/api/queue-and-task-detail";
import { RelativeTime } from "@/components/relative-time-and-duration";

/** What is paused, by whom, since when, and why. */
export function PauseBanner({ what, pause }: { what: string; pause: Pause }) {
  return (
    <p className="flex items-start gap-3 rounded-lg border border-blocked bg-blocked-soft px-4 py-3">
      <PauseIcon aria-hidden className="mt-0.5 size-4 shrink-0 text-blocked" />
      <span className="min-w-0 break-words">
        <span className="font-medium">{what}</span>
        {pause.by !== null && pause.by !== "" && ` by ${pause.by}`}
        {pause.at !== null && (
          <>
            {" "}
            <RelativeTime at={pause.at} />
          </>
        )}
        {pause.note !== "" && `: ${pause.note}`}. No job starts until it is resumed; running jobs continue.
      </span>
    </p>
  );
}
