/** The attempts of a job as a waterfall: waits, runs, workers, outcomes, and the log lines of each. */

import { useMemo, useState } from "react";

import type { Job, LogLine } from "@/api/job-detail";
import { Badge } from "@/components/badges";
import { Button } from "@/components/buttons";
import { AttemptLog } from "@/components/job/attempt-log";
import { RelativeTime } from "@/components/relative-time-and-duration";
import { TimelineTrack, WAIT_CLASS } from "@/components/timeline-track";
import { jobTimeline, outcomeTone, type AttemptSpan } from "@/lib/attempt-spans";
import { formatCount } from "@/lib/format-number";
import { formatDuration, formatExact } from "@/lib/format-time";
import { logLinesByAttempt } from "@/lib/log-lines-of-attempt";
import { useNow } from "@/lib/server-clock";
import { useTimeZone } from "@/lib/time-zone-setting";

/** Number of attempts shown at first: the latest. */
const MAX_SHOWN = 8;
const NO_LINES: readonly LogLine[] = [];

type AttemptsProps = Pick<Job, "status" | "enqueued_at" | "ended_at" | "due_at" | "attempts">;

export function AttemptTimeline({ job, lines }: { job: AttemptsProps; lines: readonly LogLine[] }) {
  const life = jobTimeline(job, useNow());
  const zone = useTimeZone();
  const linesOf = useMemo(() => logLinesByAttempt(job.attempts, lines), [job.attempts, lines]);
  const [isAll, setAll] = useState(false);
  const shown = isAll ? life.spans : life.spans.slice(-MAX_SHOWN);
  const hidden = life.spans.length - shown.length;
  return (
    <div className="flex flex-col">
      <p className="tabular-nums flex justify-between gap-4 border-b px-4 py-2 text-xs text-muted">
        <span>
          enqueued <time dateTime={job.enqueued_at}>{formatExact(job.enqueued_at, zone)}</time>
        </span>
        <span>{formatDuration(life.until - life.from)} total</span>
      </p>
      {hidden > 0 && (
        <div className="border-b px-4 py-2">
          <Button onClick={() => setAll(true)}>Show {formatCount(hidden)} earlier</Button>
        </div>
      )}
      <ol aria-label="Attempts">
        {shown.map((stretch) => (
          <li key={stretch.key} className="border-b border-line/60 px-4 py-2.5 last:border-b-0">
            <AttemptRow stretch={stretch} from={life.from} until={life.until} job={job} />
            {stretch.attempt !== null && (
              <AttemptLog attempt={stretch.attempt.attempt} lines={linesOf.get(stretch.attempt) ?? NO_LINES} />
            )}
          </li>
        ))}
      </ol>
    </div>
  );
}

function AttemptRow({
  stretch,
  from,
  until,
  job,
}: {
  stretch: AttemptSpan;
  from: number;
  until: number;
  job: AttemptsProps;
}) {
  const { attempt, waitedFrom, waitedUntil, ranUntil, isOpen } = stretch;
  const tone = attempt === null ? null : outcomeTone(attempt.outcome);
  const waited = formatDuration(waitedUntil - waitedFrom);
  const ran = formatDuration(ranUntil - waitedUntil);
  return (
    <div className="flex flex-col gap-1.5">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        {attempt === null || tone === null ? (
          <span className="font-medium">
            {isOpen ? "Waiting" : "Never started"}
            {isOpen && job.due_at !== null && job.status === "SCHEDULED" && (
              <span className="font-normal text-muted">
                {" "}
                due <RelativeTime at={job.due_at} />
              </span>
            )}
          </span>
        ) : (
          <>
            <span className="font-medium">Attempt {attempt.attempt}</span>
            <Badge className={tone.badge}>{attempt.outcome}</Badge>
            <span className="min-w-0 truncate font-mono text-xs text-muted" title={attempt.worker}>
              {attempt.worker}
            </span>
          </>
        )}
        <span className="tabular-nums ml-auto text-xs whitespace-nowrap text-muted">
          {isOpen && attempt === null ? "waiting" : "waited"} {waited}
          {attempt !== null && ` · ${isOpen ? "running" : "ran"} ${ran}`}
        </span>
      </div>
      <TimelineTrack
        from={from}
        until={until}
        segments={[
          ...(waitedUntil > waitedFrom
            ? [{ from: waitedFrom, until: waitedUntil, className: WAIT_CLASS, title: `waited ${waited}` }]
            : []),
          ...(tone === null ? [] : [{ from: waitedUntil, until: ranUntil, className: tone.mark, title: `ran ${ran}` }]),
        ]}
      />
      {attempt?.note && <p className="font-mono text-xs break-words whitespace-pre-wrap text-failed">{attempt.note}</p>}
    </div>
  );
}
