/** What a job has to do with others: what it comes after, what waits for it, its lock, its workflow, its id. */

import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

import { partsOf, type Job, type RelatedJob } from "@/api/job";
import { Badge, StateBadge } from "@/components/badge";
import { Button } from "@/components/button";
import { JobLink } from "@/components/links";
import { Moment } from "@/components/moment";
import { plural } from "@/lib/numbers";

export interface Related {
  readonly jobs: readonly RelatedJob[];
  readonly hasMore: boolean;
  readonly onMore: () => void;
}

interface RelationsProps {
  job: Job;
  before: Related;
  after: Related;
  /** The newest run of its id, where it is another one. */
  newestRun: string | null;
}

/** True where there is anything to say. */
export function hasRelations({ job, before, after, newestRun }: RelationsProps): boolean {
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

export function Relations({ job, before, after, newestRun }: RelationsProps) {
  const name = partsOf(job.jobId);
  return (
    <div className="flex flex-col gap-4">
      {job.workflow !== null && <WorkflowOf job={job} workflow={job.workflow} />}
      {before.jobs.length > 0 && <RelatedJobs title="Comes after" related={before} />}
      {after.jobs.length > 0 && <RelatedJobs title="Waited for by" related={after} />}
      {job.lock !== null && <LockOf job={job} lock={job.lock} />}
      {job.obstacle?.kind === "same_id" && (
        <Part title="The same id">
          Starts when the run before it has ended:{" "}
          {job.obstacle.jobs.map((id) => (
            <JobLink key={id} id={id} />
          ))}
        </Part>
      )}
      {newestRun !== null && (
        <Part title="The same id">
          {name.id} was enqueued again: <JobLink id={`${job.jobId}@${newestRun}`}>its newest run</JobLink>
        </Part>
      )}
      {job.handled_by !== null && (
        <Part title="Failure handler">
          <JobLink id={job.handled_by} />
        </Part>
      )}
    </div>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section>
      <h3 className="mb-1 text-xs font-medium text-muted">{title}</h3>
      <div className="min-w-0 break-words">{children}</div>
    </section>
  );
}

function RelatedJobs({ title, related }: { title: string; related: Related }) {
  return (
    <Part title={title}>
      <ul className="flex flex-col gap-1.5">
        {related.jobs.map((one) => (
          <li key={one.jobId} className="flex flex-wrap items-center gap-x-2 gap-y-0.5">
            {one.status === null ? (
              <Badge title="Its record is not kept any more">gone</Badge>
            ) : (
              <StateBadge state={one.status} />
            )}
            <JobLink id={one.run === null ? one.jobId : `${one.jobId}@${one.run}`}>{one.jobId}</JobLink>
            {one.may_fail && <span className="text-xs text-muted">may fail</span>}
          </li>
        ))}
      </ul>
      {related.hasMore && (
        <Button look="quiet" className="mt-1" onClick={related.onMore}>
          Show more
        </Button>
      )}
    </Part>
  );
}

function LockOf({ job, lock }: { job: Job; lock: string }) {
  const detail = job.lock_detail;
  const isMine = detail?.holder === `${job.jobId}@${job.run}` || detail?.holder === job.jobId;
  return (
    <Part title="Lock">
      <Link to="/locks" search={{ lock }} className="link font-mono text-[13px] break-all">
        {lock}
      </Link>
      {detail !== null && (
        <p className="text-muted">
          {detail.holder === null ? (
            "nobody holds it"
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
                  since <Moment at={detail.since} />
                </>
              )}
            </>
          )}
          {detail.waiting > 0 && `; ${plural(detail.waiting, "job")} waiting`}
        </p>
      )}
    </Part>
  );
}

function WorkflowOf({ job, workflow }: { job: Job; workflow: string }) {
  return (
    <Part title="Workflow">
      <Link to="/workflows/$id" params={{ id: workflow }} search={{}} className="link font-mono text-[13px] break-all">
        {workflow}
      </Link>
      {job.step !== null && (
        <p className="text-muted">
          {job.step.is_undo ? "undoes step " : "step "}
          {job.step.name}
          {job.step.item !== null && `, item ${job.step.item}`}
        </p>
      )}
    </Part>
  );
}
