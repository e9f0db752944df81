import type { Job } from "@/api/job";
import { Meter } from "@/components/meter";
import { Moment } from "@/components/moment";
import { useNow } from "@/lib/now";
import { count, rate } from "@/lib/numbers";
import { timeLeft } from "@/lib/progress";
import { duration } from "@/lib/time";

type Detail = NonNullable<Job["progress_detail"]>;

/** How far an attempt has come, how fast it goes, and how long it will take. */
export function Progress({ progress, isRunning }: { progress: Detail; isRunning: boolean }) {
  const left = timeLeft(progress, useNow());
  const facts = [
    progress.total !== 100 && `${count(progress.done)} of ${count(progress.total)}`,
    isRunning && progress.per_second !== null && rate(progress.per_second),
    isRunning && left !== null && `${duration(left)} left`,
  ].filter((fact) => fact !== false);
  return (
    <div className="flex flex-col gap-2 p-4">
      <div className="flex flex-wrap items-baseline justify-between gap-x-4">
        <p className="min-w-0 break-words">
          <span className="figures text-lg font-semibold">{progress.percent} %</span>
          {progress.note !== "" && <span className="ml-2 text-muted">{progress.note}</span>}
        </p>
        <p className="figures text-xs text-muted">
          {facts.join(" · ")}
          {!isRunning && (
            <>
              {facts.length > 0 && " · "}
              last told <Moment at={progress.at} />
            </>
          )}
        </p>
      </div>
      <Meter value={progress.percent} label="Progress" />
    </div>
  );
}
