/** What a job is, and what bounds it. */

import { Link } from "@tanstack/react-router";
import { ExternalLink } from "lucide-react";

import type { Job } from "@/api/job";
import { Badge } from "@/components/badge";
import { CopyButton } from "@/components/copy";
import { Facts } from "@/components/facts";
import { JsonViewer } from "@/components/json/viewer";
import { Moment, Span } from "@/components/moment";
import { count } from "@/lib/numbers";
import type { Filter } from "@/lib/filter";
import { duration } from "@/lib/time";
import { traceAddress } from "@/lib/trace";

/** The smaller, the earlier. */
export const PRIORITIES: readonly { readonly value: number; readonly label: string }[] = [
  { value: -15, label: "critical" },
  { value: -10, label: "high" },
  { value: -5, label: "medium" },
  { value: 0, label: "normal" },
  { value: 10, label: "low" },
];

/** "0, normal". */
export function priorityWords(priority: number): string {
  const name = PRIORITIES.find(({ value }) => value === priority)?.label;
  return name === undefined ? String(priority) : `${priority}, ${name}`;
}

function Filtered({ filter, children }: { filter: Filter; children: string }) {
  return (
    <Link to="/jobs" search={filter} className="link rounded-sm break-all">
      {children}
    </Link>
  );
}

export function JobFacts({ job, traceUrl }: { job: Job; traceUrl: string | null }) {
  return (
    <Facts
      facts={[
        ["Task", <Filtered filter={{ task: job.type }}>{job.type}</Filtered>],
        ["Queue", <Filtered filter={{ queue: job.queue }}>{job.queue}</Filtered>],
        ["Enqueued", <Moment at={job.enqueued_at} />],
        ["Due", job.due_at && job.status === "SCHEDULED" && <Moment at={job.due_at} />],
        ["Started", job.claimed_at && <Moment at={job.claimed_at} />],
        ["Ended", job.ended_at && <Moment at={job.ended_at} />],
        [
          "Ran",
          job.claimed_at && (job.ended_at || job.status === "PROCESSING") ? (
            <Span from={job.claimed_at} until={job.ended_at} />
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
        ["Lease until", job.status === "PROCESSING" && job.lease_until ? <Moment at={job.lease_until} /> : null],
        ["Priority", priorityWords(job.priority)],
        ["Failures", `${count(job.failures)} of ${count(job.limits.attempts)}`],
        ["Stalls", job.stalls > 0 && `${count(job.stalls)} of ${count(job.limits.max_stalls)} forgiven`],
        ["Snoozes", job.snoozes > 0 && count(job.snoozes)],
        ["Given back", job.handbacks > 0 && count(job.handbacks)],
        ["Reason", job.reason],
        [
          "Tags",
          job.tags.length > 0 && (
            <span className="flex flex-wrap gap-1">
              {job.tags.map((tag) => (
                <Badge key={tag}>
                  <Filtered filter={{ tag }}>{tag}</Filtered>
                </Badge>
              ))}
            </span>
          ),
        ],
        ["Trace", job.trace_id && <Trace id={job.trace_id} url={traceUrl} />],
        ["Run", <span className="font-mono text-[13px]">{job.run}</span>],
        ["Same id", <Filtered filter={{ queue: job.queue, text: idOf(job) }}>other runs of this id</Filtered>],
      ]}
    />
  );
}

/** The trace that it belongs to; a link where the server says where traces are looked at. */
function Trace({ id, url }: { id: string; url: string | null }) {
  const address = traceAddress(url, id);
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
      <CopyButton text={id} label="Copy the trace id" />
    </span>
  );
}

function idOf(job: Job): string {
  return job.jobId.slice(job.queue.length + 1);
}

export function JobLimits({ job }: { job: Job }) {
  const { limits } = job;
  return (
    <div className="flex flex-col gap-3">
      <Facts
        facts={[
          ["Attempts", `${count(limits.attempts)} failures, then it is a dead letter`],
          ["Time limit", limits.timeout_ms === null ? "none" : `${duration(limits.timeout_ms)} for an attempt`],
          [
            "Silence",
            limits.progress_timeout_ms !== null && `${duration(limits.progress_timeout_ms)} without progress`,
          ],
          ["Stalls", `${count(limits.max_stalls)} forgiven`],
          ["At most once", limits.at_most_once && "an attempt that was lost is not repeated"],
          ["Start by", limits.expires_at && <Moment at={limits.expires_at} />],
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
