import type { ScheduleRun } from "@/api/schedules";
import { JobStateBadge } from "@/components/badges";
import { JobLink } from "@/components/job-links";
import { Duration } from "@/components/relative-time-and-duration";
import { formatRunTime, type RunTimeZone } from "@/components/schedules/format-run-time";

interface RecentRunsListProps {
  /** Newest first; undefined while loading. */
  runs: readonly ScheduleRun[] | undefined;
  error: Error | null;
  zone: RunTimeZone;
}

/** The outcomes of a schedule's latest jobs. */
export function RecentRunsList({ runs, error, zone }: RecentRunsListProps) {
  return (
    <div className="min-w-0">
      <h3 className="text-xs text-muted">Recent runs</h3>
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
        <ol aria-label="Recent runs" className="tabular-nums text-[13px]">
          {runs.map((run) => (
            <li key={run.at} className="flex flex-wrap items-center gap-x-2 py-px whitespace-nowrap">
              {run.status === null ? (
                <>
                  <span className="text-muted">{formatRunTime(run.at, zone)}</span>
                  <span className="text-muted" title="Skipped, or the job is no longer stored">
                    no job
                  </span>
                </>
              ) : (
                <>
                  <JobLink id={run.jobId} className="link text-text">
                    {formatRunTime(run.at, zone)}
                  </JobLink>
                  <JobStateBadge state={run.status} />
                  {run.started_at !== null && (
                    <span className="text-muted">
                      <Duration from={run.started_at} until={run.ended_at} />
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
