import { Link } from "@tanstack/react-router";

import type { ErrorSummary } from "@/api/queue-and-task-detail";
import { JobLink, JobsLink } from "@/components/job-links";
import { RelativeTime } from "@/components/relative-time-and-duration";
import { Table, Td, Th } from "@/components/table";
import { formatCount } from "@/lib/format-number";
import type { JobsSearch } from "@/routes/jobs.search-params";

interface ErrorTableProps {
  errors: readonly ErrorSummary[];
  filter: JobsSearch;
}

/** Failures by error, with a real example. */
export function ErrorTable({ errors, filter }: ErrorTableProps) {
  return (
    <Table label="Failures by error">
      <thead>
        <tr>
          <Th>Error</Th>
          <Th className="text-right">Jobs</Th>
          <Th className="text-right">Dead letters</Th>
          <Th className="text-right max-sm:hidden">First seen</Th>
          <Th className="text-right">Last seen</Th>
        </tr>
      </thead>
      <tbody>
        {errors.map((one) => (
          <tr key={`${one.error} ${one.pattern}`}>
            <Td className="min-w-40">
              <span className="font-medium break-all text-failed">{one.error}</span>
              <span className="line-clamp-2 text-xs break-words">{one.message}</span>
              <span className="text-xs text-muted">
                example: <JobLink id={one.job} className="link font-mono text-xs" />
              </span>
            </Td>
            <Td className="text-right">
              <JobsLink filter={{ ...filter, error: one.error }}>{formatCount(one.count)}</JobsLink>
            </Td>
            <Td className="text-right">
              <Link
                to="/dead"
                search={{ queue: filter.queue, error: one.error }}
                className="tabular-nums inline-block min-h-6 min-w-6 leading-6 hover:underline"
              >
                {formatCount(one.dead)}
              </Link>
            </Td>
            <Td className="text-right text-muted max-sm:hidden">
              <RelativeTime at={one.first_seen} />
            </Td>
            <Td className="text-right text-muted">
              <RelativeTime at={one.last_seen} />
            </Td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}
