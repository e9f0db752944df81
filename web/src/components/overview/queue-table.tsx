import { Link } from "@tanstack/react-router";

import type { OverviewQueue } from "@/api/overview";
import { Badge } from "@/components/badges";
import { Sparkline } from "@/components/charts/sparkline";
import { JobsLink } from "@/components/job-links";
import { WaitDuration } from "@/components/relative-time-and-duration";
import { Table, Td, Th } from "@/components/table";
import { formatRate, formatShort } from "@/lib/format-number";

/** One row per queue: depth, age of the oldest pending job, enqueue and completion rates. */
export function QueueTable({ queues, at }: { queues: readonly OverviewQueue[]; at: string }) {
  return (
    <Table label="Queues">
      <thead>
        <tr>
          <Th>Queue</Th>
          <Th className="text-right">Pending</Th>
          <Th className="text-right max-sm:hidden">Running</Th>
          <Th className="text-right">Oldest wait</Th>
          <Th className="text-right max-sm:hidden">In</Th>
          <Th className="text-right max-sm:hidden">Out</Th>
          <Th>Last hour</Th>
        </tr>
      </thead>
      <tbody>
        {queues.map((queue) => (
          <tr key={queue.name}>
            <Td className="max-w-40 sm:max-w-64">
              <span className="flex items-center gap-2">
                <Link to="/queues/$name" params={{ name: queue.name }} className="truncate font-medium hover:underline">
                  {queue.name}
                </Link>
                {queue.is_paused && <Badge className="bg-blocked-soft text-blocked">paused</Badge>}
              </span>
            </Td>
            <Td className="text-right">
              <JobsLink filter={{ queue: queue.name, state: "PENDING" }} label={`${queue.stats.PENDING} pending`}>
                {formatShort(queue.stats.PENDING)}
              </JobsLink>
            </Td>
            <Td className="text-right max-sm:hidden">
              <JobsLink filter={{ queue: queue.name, state: "PROCESSING" }} label={`${queue.stats.PROCESSING} running`}>
                {formatShort(queue.stats.PROCESSING)}
              </JobsLink>
            </Td>
            <Td className="text-right">
              <WaitDuration ms={queue.oldest_wait_ms} at={at} />
            </Td>
            <Td className="tabular-nums text-right whitespace-nowrap max-sm:hidden">
              {formatRate(queue.arrivals_per_second)}
            </Td>
            <Td className="tabular-nums text-right whitespace-nowrap max-sm:hidden">
              {formatRate(queue.services_per_second)}
            </Td>
            <Td>
              <Sparkline
                label={`${queue.name}, completed per minute`}
                values={queue.completed_per_minute}
                failed={queue.failed_per_minute}
                className="w-16 sm:w-40"
              />
            </Td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}
