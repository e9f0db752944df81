import type { ScheduleRun } from "@/api/schedules";
import { StateBadge } from "@/components/badge";
import { JobLink } from "@/components/links";
import { Span } from "@/components/moment";
import { told, type TimesIn } from "@/components/schedules/times";

interface RunsProps {
  /** The latest first; undefined while they are read. */
  runs: readonly ScheduleRun[] | undefined;
  error: Error | null;
  zone: TimesIn;
}

/** What became of a schedule's latest jobs. */
export function ScheduleRuns({ runs, error, zone }: RunsProps) {
  return (
    <div className="min-w-64">
      <h3 className="text-xs text-muted">Latest runs</h3>
      {runs === undefined ? (
        error === null ? (
          <p className="text-[13px] text-muted">…</p>
        ) : (
          <p role="alert" className="text-[13px] text-failed">
            {error.message}
          </p>
        )
      ) : runs.length === 0 ? (
        <p className="text-[13px] text-muted">none yet</p>
      ) : (
        <ol aria-label="Latest runs" className="figures text-[13px]">
          {runs.map((run) => (
            <li key={run.at} className="flex items-center gap-2 py-px whitespace-nowrap">
              {run.status === null ? (
                <>
                  <span className="text-muted">{told(run.at, zone)}</span>
                  <span className="text-muted" title="It was skipped, or its job is kept no longer.">
                    no job
                  </span>
                </>
              ) : (
                <>
                  <JobLink id={run.jobId} className="link text-text">
                    {told(run.at, zone)}
                  </JobLink>
                  <StateBadge state={run.status} />
                  {run.started_at !== null && (
                    <span className="text-muted">
                      <Span from={run.started_at} until={run.ended_at} />
                    </span>
                  )}
                </>
              )}
            </li>
          ))}
        </ol>
      )}
    </div>
  );
}
