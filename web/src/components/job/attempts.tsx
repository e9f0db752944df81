/** The life of a job: every wait and every attempt on one line of time, with who ran it and how it ended. */

import { useState } from "react";

import type { Job } from "@/api/job";
import { Badge } from "@/components/badge";
import { Button } from "@/components/button";
import { Moment } from "@/components/moment";
import { Track, WAIT } from "@/components/track";
import { lifeOf, toneOf, type Stretch } from "@/lib/attempts";
import { useNow } from "@/lib/now";
import { count } from "@/lib/numbers";
import { duration, exact } from "@/lib/time";
import { useZone } from "@/lib/zone";

/** So many are shown at once, the latest. */
const SHOWN = 8;

type AttemptsProps = Pick<Job, "status" | "enqueued_at" | "ended_at" | "due_at" | "attempts">;

export function Attempts({ job }: { job: AttemptsProps }) {
  const life = lifeOf(job, useNow());
  const zone = useZone();
  const [isAll, setAll] = useState(false);
  const shown = isAll ? life.stretches : life.stretches.slice(-SHOWN);
  const hidden = life.stretches.length - shown.length;
  return (
    <div className="flex flex-col">
      <p className="figures flex justify-between gap-4 border-b px-4 py-2 text-xs text-muted">
        <span>
          enqueued <time dateTime={job.enqueued_at}>{exact(job.enqueued_at, zone)}</time>
        </span>
        <span>{duration(life.until - life.from)} in all</span>
      </p>
      {hidden > 0 && (
        <div className="border-b px-4 py-2">
          <Button onClick={() => setAll(true)}>Show {count(hidden)} earlier</Button>
        </div>
      )}
      <ol aria-label="Attempts">
        {shown.map((stretch) => (
          <li key={stretch.key} className="border-b border-line/60 px-4 py-2.5 last:border-b-0">
            <StretchRow stretch={stretch} from={life.from} until={life.until} job={job} />
          </li>
        ))}
      </ol>
    </div>
  );
}

function StretchRow({
  stretch,
  from,
  until,
  job,
}: {
  stretch: Stretch;
  from: number;
  until: number;
  job: AttemptsProps;
}) {
  const { attempt, waitedFrom, waitedUntil, ranUntil, isOpen } = stretch;
  const tone = attempt === null ? null : toneOf(attempt.outcome);
  const waited = duration(waitedUntil - waitedFrom);
  const ran = duration(ranUntil - waitedUntil);
  return (
    <div className="flex flex-col gap-1.5">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        {attempt === null || tone === null ? (
          <span className="font-medium">
            {isOpen ? "Waits" : "Never started"}
            {isOpen && job.due_at !== null && job.status === "SCHEDULED" && (
              <span className="font-normal text-muted">
                {" "}
                due <Moment at={job.due_at} />
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
        <span className="figures ml-auto text-xs whitespace-nowrap text-muted">
          {isOpen && attempt === null ? "waiting" : "waited"} {waited}
          {attempt !== null && ` · ${isOpen ? "running" : "ran"} ${ran}`}
        </span>
      </div>
      <Track
        from={from}
        until={until}
        stretches={[
          ...(waitedUntil > waitedFrom
            ? [{ from: waitedFrom, until: waitedUntil, className: WAIT, title: `waited ${waited}` }]
            : []),
          ...(tone === null ? [] : [{ from: waitedUntil, until: ranUntil, className: tone.mark, title: `ran ${ran}` }]),
        ]}
      />
      {attempt?.note && <p className="font-mono text-xs break-words whitespace-pre-wrap text-failed">{attempt.note}</p>}
    </div>
  );
}
