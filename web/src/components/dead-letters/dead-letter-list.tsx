import type { DeadLetter } from "@/api/dead-letters";
import { Button } from "@/components/buttons";
import { JobLink } from "@/components/job-links";
import { RelativeTime } from "@/components/relative-time-and-duration";
import { runKey } from "@/lib/run-key";

interface DeadLetterListProps {
  jobs: readonly DeadLetter[];
  /** Gets the ID with its run. Undefined if the user's role does not allow it. */
  onRedrive?: (id: string) => void;
  onDelete?: (id: string) => void;
}

/** Dead letters, newest first. */
export function DeadLetterList({ jobs, onRedrive, onDelete }: DeadLetterListProps) {
  return (
    <ul aria-label="Dead letters" className="divide-y divide-line/60">
      {jobs.map((job) => (
        <li key={runKey(job)} className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-2">
          <span className="min-w-0 flex-1 basis-72">
            <JobLink id={job.jobId} />
            <span className="block text-xs break-words text-muted">
              {job.type}, {job.attempt === 1 ? "1 attempt" : `${job.attempt} attempts`}, failed{" "}
              <RelativeTime at={job.ended_at} />
              {job.error && `: ${job.error.type}: ${job.error.message.slice(0, 200)}`}
            </span>
          </span>
          <span className="flex gap-1">
            {onRedrive && (
              <Button onClick={() => onRedrive(runKey(job))} aria-label={`Redrive ${job.jobId}`}>
                Redrive
              </Button>
            )}
            {onDelete && (
              <Button variant="quiet" onClick={() => onDelete(runKey(job))} aria-label={`Delete ${job.jobId}`}>
                Delete
              </Button>
            )}
          </span>
        </li>
      ))}
    </ul>
  );
}
