import type { Job } from "@/api/job-list";

/** The key of a run: an ID may have several runs. */
export function runKey(job: Job): string {
  return `${job.jobId}@${job.run}`;
}
