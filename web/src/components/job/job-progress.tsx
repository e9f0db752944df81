import type { Job } from "@/api/job-detail";
import { ProgressBar } from "@/components/progress-bar";
import { RelativeTime } from "@/components/relative-time-and-duration";
import { estimatedTimeLeft } from "@/lib/estimated-time-left";
import { formatCount, formatRate } from "@/lib/format-number";
import { formatDuration } from "@/lib/format-time";
import { useNow } from "@/lib/server-clock";

type Detail = NonNullable<Job["progress"]>;

/** The progress of an attempt: percent, rate and estimated time left. */
export function JobProgress({ progress, isRunning }: { progress: Detail; isRunning: boolean }) {
  const left = estimatedTimeLeft(progress, useNow());
  const facts = [
    progress.total !== 100 && `${formatCount(progress.done)} of ${formatCount(progress.total)}`,
    isRunning && progress.per_second !== null && formatRate(progress.per_second),
    isRunning && left !== null && `${formatDuration(left)} left`,
  ].filter((fact) => fact !== false);
  return (
    <div className="flex flex-col gap-2 p-4">
      <div className="flex flex-wrap items-baseline justify-between gap-x-4">
        <p className="min-w-0 break-words">
          <span className="tabular-nums text-lg font-semibold">{progress.percent} %</span>
          {progress.note !== "" && <span className="ml-2 text-muted">{progress.note}</span>}
        </p>
        <p className="tabular-nums text-xs text-muted">
          {facts.join(" · ")}
          {!isRunning && (
            <>
              {facts.length > 0 && " · "}
              last update <RelativeTime at={progress.at} />
            </>
          )}
        </p>
      </div>
      <ProgressBar value={progress.percent} label="Progress" />
    </div>
  );
}
