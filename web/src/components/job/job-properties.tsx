/** The properties and the limits of a job. */

import { Link } from "@tanstack/react-router";
import { ExternalLink } from "lucide-react";

import type { Job } from "@/api/job-detail";
import { Badge } from "@/components/badges";
import { CopyButton } from "@/components/copy-button";
import { DefinitionList } from "@/components/definition-list";
import { JsonViewer } from "@/components/json/json-viewer";
import { RelativeTime, Duration } from "@/components/relative-time-and-duration";
import { formatCount, formatPlural } from "@/lib/format-number";
import { formatDuration } from "@/lib/format-time";
import type { Filter } from "@/lib/job-filter";
import { priorityLabel } from "@/lib/job-priorities";
import { traceUrl } from "@/lib/trace-url";

function FilterLink({ filter, children }: { filter: Filter; children: string }) {
  return (
    <Link to="/jobs" search={filter} className={LINK}>
      {children}
    </Link>
  );
}

const LINK = "link rounded-sm break-all";

export function JobProperties({ job, traceUrl }: { job: Job; traceUrl: string | null }) {
  return (
    <DefinitionList
      facts={[
        [
          "Task",
          <Link to="/tasks/$name" params={{ name: job.type }} search={{ queue: job.queue }} className={LINK}>
            {job.type}
          </Link>,
        ],
        [
          "Queue",
          <Link to="/queues/$name" params={{ name: job.queue }} className={LINK}>
            {job.queue}
          </Link>,
        ],
        ["Enqueued", <RelativeTime at={job.enqueued_at} />],
        ["Due", job.due_at && job.status === "SCHEDULED" && <RelativeTime at={job.due_at} />],
        ["Started", job.claimed_at && <RelativeTime at={job.claimed_at} />],
        ["Ended", job.ended_at && <RelativeTime at={job.ended_at} />],
        [
          "Ran",
          job.claimed_at && (job.ended_at || job.status === "PROCESSING") ? (
            <Duration from={job.claimed_at} until={job.ended_at} />
          ) : null,
        ],
        [
          "Worker",
          job.worker && (
            <Link to="/workers" className="link font-mono text-[13px] break-all">
              {job.worker}
            </Link>
          ),
        ],
        ["Lease until", job.status === "PROCESSING" && job.lease_until ? <RelativeTime at={job.lease_until} /> : null],
        ["Priority", priorityLabel(job.priority)],
        ["Failures", `${formatCount(job.failures)} of ${formatCount(job.limits.attempts)}`],
        [
          "Crashes",
          job.stalls > 0 &&
            `${formatPlural(job.stalls, "crash", "crashes")} (${job.limits.max_stalls === 0 ? "none" : formatCount(job.limits.max_stalls)} allowed)`,
        ],
        ["Snoozes", job.snoozes > 0 && formatCount(job.snoozes)],
        ["Returned", job.handbacks > 0 && formatCount(job.handbacks)],
        ["Reason", job.reason],
        [
          "Tags",
          job.tags.length > 0 && (
            <span className="flex flex-wrap gap-1">
              {job.tags.map((tag) => (
                <Badge key={tag}>
                  <FilterLink filter={{ tag }}>{tag}</FilterLink>
                </Badge>
              ))}
            </span>
          ),
        ],
        ["Enqueued by", job.enqueued_by],
        ["Trace", job.trace_id && <TraceLink id={job.trace_id} url={traceUrl} />],
        ["Run", <span className="font-mono text-[13px]">{job.run}</span>],
        ["Same ID", <FilterLink filter={{ queue: job.queue, text: bareId(job) }}>other runs of this ID</FilterLink>],
      ]}
    />
  );
}

/** The trace id; a link where the server has a trace URL template. */
function TraceLink({ id, url }: { id: string; url: string | null }) {
  const address = traceUrl(url, id);
  return (
    <span className="flex items-start gap-1">
      <span className="min-w-0 font-mono text-[13px] break-all">
        {address === null ? (
          id
        ) : (
          <a
            href={address}
            target="_blank"
            rel="noopener noreferrer"
            className="rounded-sm underline underline-offset-2"
          >
            {id}
            <ExternalLink aria-label="in a new tab" className="ml-1 inline size-3" />
          </a>
        )}
      </span>
      <CopyButton text={id} label="Copy trace ID" />
    </span>
  );
}

function bareId(job: Job): string {
  return job.jobId.slice(job.queue.length + 1);
}

export function JobLimits({ job }: { job: Job }) {
  const { limits } = job;
  return (
    <div className="flex flex-col gap-3">
      <DefinitionList
        facts={[
          ["Attempts", `${formatPlural(limits.attempts, "failure")} before it is dead-lettered`],
          ["Time limit", limits.timeout_ms === null ? "none" : `${formatDuration(limits.timeout_ms)} per attempt`],
          [
            "Progress timeout",
            limits.progress_timeout_ms !== null && `${formatDuration(limits.progress_timeout_ms)} without progress`,
          ],
          ["Crashes", `${formatCount(limits.max_stalls)} allowed`],
          ["At most once", limits.at_most_once && "a lost attempt is not retried"],
          ["Expires", limits.expires_at && <RelativeTime at={limits.expires_at} />],
        ]}
      />
      {Object.keys(job.meta).length > 0 && (
        <div className="flex flex-col gap-1">
          <h3 className="text-xs font-medium text-muted">Meta</h3>
          <JsonViewer source={job.meta_text} label="Meta" fileName="meta.json" />
        </div>
      )}
    </div>
  );
}
