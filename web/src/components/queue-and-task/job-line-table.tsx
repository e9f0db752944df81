import { Link } from "@tanstack/react-router";

import type { JobLine } from "@/api/queue-and-task-detail";
import { JobStateBadge } from "@/components/badges";
import { JobLink } from "@/components/job-links";
import { RelativeTime } from "@/components/relative-time-and-duration";
import { Table, Td, Th } from "@/components/table";
import { durationUnit, formatInUnit, type DurationUnit } from "@/lib/format-durations-in-one-unit";

interface JobLineTableProps {
  label: string;
  jobs: readonly JobLine[];
  /** Of a queue: its jobs are of several tasks. */
  hasTasks: boolean;
}

/** A few jobs with what they waited and ran, each column in one unit. */
export function JobLineTable({ label, jobs, hasTasks }: JobLineTableProps) {
  const waits = durationUnit(jobs.map(({ waited_ms }) => waited_ms));
  const runs = durationUnit(jobs.map(({ ran_ms }) => ran_ms));
  return (
    <Table label={label}>
      <thead>
        <tr>
          <Th>Job</Th>
          {hasTasks && <Th>Task</Th>}
          <Th>State</Th>
          <Th className="text-right">Waited</Th>
          <Th className="text-right">Ran</Th>
          <Th className="text-right max-sm:hidden">
            {jobs.some((job) => job.ended_at === null) ? "Started" : "Ended"}
          </Th>
        </tr>
      </thead>
      <tbody>
        {jobs.map((job) => (
          <tr key={`${job.jobId}@${job.run}`}>
            <Td className="max-w-0 min-w-32" title={job.error ?? job.jobId}>
              <JobLink id={`${job.jobId}@${job.run}`} className="block truncate font-mono text-xs">
                {job.jobId.slice(job.jobId.lastIndexOf(":") + 1)}
              </JobLink>
            </Td>
            {hasTasks && (
              <Td className="max-w-32 truncate">
                <Link
                  to="/tasks/$name"
                  params={{ name: job.type }}
                  search={{ queue: job.queue }}
                  className="hover:underline"
                >
                  {job.type}
                </Link>
              </Td>
            )}
            <Td>
              <JobStateBadge state={job.status} />
            </Td>
            <Td className="tabular-nums text-right whitespace-nowrap">{spanIn(job.waited_ms, waits)}</Td>
            <Td className="tabular-nums text-right whitespace-nowrap">{spanIn(job.ran_ms, runs)}</Td>
            <Td className="text-right text-muted max-sm:hidden">
              <RelativeTime at={job.ended_at ?? job.started_at} />
            </Td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

function spanIn(ms: number | null, unit: DurationUnit): string {
  return ms === null ? "–" : formatInUnit(ms, unit);
}
