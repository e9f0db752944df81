import type { DeadJob } from "@/api/dead";
import { Button } from "@/components/button";
import { JobLink } from "@/components/links";
import { Moment } from "@/components/moment";
import { keyOf } from "@/lib/rows";

interface JobListProps {
  jobs: readonly DeadJob[];
  /** With the run that is meant; absent where the reader may not. */
  onRedrive?: (id: string) => void;
  onDelete?: (id: string) => void;
}

/** Dead letters, the latest first. */
export function DeadJobList({ jobs, onRedrive, onDelete }: JobListProps) {
  return (
    <ul aria-label="Dead letters" className="divide-y divide-line/60">
      {jobs.map((job) => (
        <li key={keyOf(job)} className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-2">
          <span className="min-w-0 flex-1 basis-72">
            <JobLink id={job.jobId} />
            <span className="block text-xs break-words text-muted">
              {job.type}, {job.attempt === 1 ? "1 attempt" : `${job.attempt} attempts`}, failed{" "}
              <Moment at={job.ended_at} />
              {job.error && `: ${job.error.type}: ${job.error.message.slice(0, 200)}`}
            </span>
          </span>
          <span className="flex gap-1">
            {onRedrive && (
              <Button onClick={() => onRedrive(keyOf(job))} aria-label={`Redrive ${job.jobId}`}>
                Redrive
              </Button>
            )}
            {onDelete && (
              <Button look="quiet" onClick={() => onDelete(keyOf(job))} aria-label={`Delete ${job.jobId}`}>
                Delete
              </Button>
            )}
          </span>
        </li>
      ))}
    </ul>
  );
}
