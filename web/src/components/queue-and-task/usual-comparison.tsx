import { Gauge } from "lucide-react";

import type { LoadDetail } from "@/api/queue-and-task-detail";
import { classNames } from "@/lib/class-names";
import { compareWithUsual, type ComparedWithUsual } from "@/lib/compare-with-usual";

/** What jobs take now, from the runs that have ended and those in progress, against what is usual. */
export function UsualComparison({ detail }: { detail: LoadDetail }) {
  const { now, usual, recent_runs, recent_waits, running } = detail;
  const ran = now.run.mean_ms ?? recent_runs.p50_ms;
  // A slow attempt counts before it has ended.
  const runMs = ran === null ? running.p50_ms : Math.max(ran, running.p50_ms ?? 0);
  const facts = [
    compareWithUsual("Jobs run for", runMs, usual?.run_ms),
    compareWithUsual("95 % of them wait up to", recent_waits.p95_ms, usual?.wait_p95_ms),
  ].filter((fact): fact is ComparedWithUsual => fact !== null);
  if (facts.length === 0) return null;
  const isNotable = facts.some((fact) => fact.isNotable);
  return (
    <p
      role="note"
      aria-label="Compared with usual"
      className={classNames(
        "flex items-start gap-3 rounded-lg border px-4 py-3 text-[15px]",
        isNotable ? "border-blocked bg-blocked-soft" : "bg-surface",
      )}
    >
      <Gauge
        aria-hidden
        className={classNames("mt-0.5 size-4.5 shrink-0", isNotable ? "text-blocked" : "text-muted")}
      />
      <span className="min-w-0">
        {facts.map(({ sentence }) => `${sentence}. `)}
        {usual !== null && <span className="text-[13px] text-muted">Usual: {usual.source}.</span>}
      </span>
    </p>
  );
}
