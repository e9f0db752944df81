/** Jobs related to a job: dependencies, dependents, lock, workflow, other runs of its ID. */

import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

import { parseJobId, type Job, type RelatedJob } from "@/api/job-detail";
import { Badge, JobStateBadge } from "@/components/badges";
import { Button } from "@/components/buttons";
import { JobLink } from "@/components/job-links";
import { RelativeTime } from "@/components/relative-time-and-duration";
import { formatPlural } from "@/lib/format-number";

export interface RelatedPage {
  readonly jobs: readonly RelatedJob[];
  readonly hasMore: boolean;
  readonly onMore: () => void;
}

interface RelatedJobsProps {
  job: Job;
  before: RelatedPage;
  after: RelatedPage;
  /** The newest run of its ID, if it is another one. */
  newestRun: string | null;
}

/** Whether there is anything to show. */
export function hasRelations({ job, before, after, newestRun }: RelatedJobsProps): boolean {
  return (
    before.jobs.length > 0 ||
    after.jobs.length > 0 ||
    job.lock !== null ||
    job.workflow !== null ||
    job.obstacle?.kind === "same_id" ||
    newestRun !== null ||
    job.handled_by !== null
  );
}

export function RelatedJobsView({ job, before, after, newestRun }: RelatedJobsProps) {
  const name = parseJobId(job.jobId);
  return (
    <div className="flex flex-col gap-4">
      {job.workflow !== null && <WorkflowSection job={job} workflow={job.workflow} />}
      {before.jobs.length > 0 && <RelatedJobList title="Depends on" related={before} />}
      {after.jobs.length > 0 && <RelatedJobList title="Dependents" related={after} />}
      {job.lock !== null && <LockSection job={job} lock={job.lock} />}
      {job.obstacle?.kind === "same_id" && (
        <Section title="Same ID">
          Starts after the previous run has ended:{" "}
          {job.obstacle.jobs.map((id) => (
            <JobLink key={id} id={id} />
          ))}
        </Section>
      )}
      {newestRun !== null && (
        <Section title="Same ID">
          {name.id} was enqueued again; see <JobLink id={`${job.jobId}@${newestRun}`}>the newest run</JobLink>
        </Section>
      )}
      {job.handled_by !== null && (
        <Section title="Failure handler">
          <JobLink id={job.handled_by} />
        </Section>
      )}
    </div>
  );
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section>
      <h3 className="mb-1 text-xs font-medium text-muted">{title}</h3>
      <div className="min-w-0 break-words">{children}</div>
    </section>
  );
}

function RelatedJobList({ title, related }: { title: string; related: RelatedPage }) {
  return (
    <Section title={title}>
      <ul className="flex flex-col gap-1.5">
        {related.jobs.map((one) => (
          <li key={one.jobId} className="flex flex-wrap items-center gap-x-2 gap-y-0.5">
            {one.status === null ? (
              <Badge title="The record is no longer stored">gone</Badge>
            ) : (
              <JobStateBadge state={one.status} />
            )}
            <JobLink id={one.run === null ? one.jobId : `${one.jobId}@${one.run}`}>{one.jobId}</JobLink>
            {one.may_fail && <span className="text-xs text-muted">may fail</span>}
          </li>
        ))}
      </ul>
      {related.hasMore && (
        <Button variant="quiet" className="mt-1" onClick={related.onMore}>
          Show more
        </Button>
      )}
    </Section>
  );
}

function LockSection({ job, lock }: { job: Job; lock: string }) {
  const detail = job.lock_detail;
  const isMine = detail?.holder === `${job.jobId}@${job.run}` || detail?.holder === job.jobId;
  return (
    <Section title="Lock">
      <Link to="/locks" search={{ lock }} className="link font-mono text-[13px] break-all">
        {lock}
      </Link>
      {detail !== null && (
        <p className="text-muted">
          {detail.holder === null ? (
            "not held"
          ) : (
            <>
              {isMine ? (
                "held by this job"
              ) : (
                <>
                  held by <JobLink id={detail.holder} />
                </>
              )}
              {detail.since !== null && (
                <>
                  {" "}
                  since <RelativeTime at={detail.since} />
                </>
              )}
            </>
          )}
          {detail.waiting > 0 && `; ${formatPlural(detail.waiting, "job")} waiting`}
        </p>
      )}
    </Section>
  );
}

function WorkflowSection({ job, workflow }: { job: Job; workflow: string }) {
  return (
    <Section title="Workflow">
      <Link to="/workflows/$id" params={{ id: workflow }} search={{}} className="link font-mono text-[13px] break-all">
        {workflow}
      </Link>
      {job.step !== null && (
        <p className="text-muted">
          {job.step.is_undo ? "undo of step " : "step "}
          {job.step.name}
          {job.step.item !== null && `, item ${job.step.item}`}
        </p>
      )}
    </Section>
  );
}
