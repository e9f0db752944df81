import type { TaskMetrics } from "@/api/metrics-history";
import { JobsLink } from "@/components/job-links";
import { Table, Td, Th } from "@/components/table";
import { formatPercent, formatShort } from "@/lib/format-number";
import { formatDuration } from "@/lib/format-time";

interface TaskTableProps {
  label: string;
  tasks: readonly TaskMetrics[];
  order: "slowest" | "failing";
}

/** The slowest or the most failing tasks. */
export function SlowestOrFailingTasksTable({ label, tasks, order }: TaskTableProps) {
  const isSlowest = order === "slowest";
  return (
    <Table label={label}>
      <thead>
        <tr>
          <Th>Task</Th>
          <Th className="text-right">{isSlowest ? "p50" : "Failed"}</Th>
          <Th className="text-right">{isSlowest ? "p95" : "Failure rate"}</Th>
          <Th className="text-right">Runs</Th>
        </tr>
      </thead>
      <tbody>
        {tasks.map((task) => (
          <tr key={`${task.queue} ${task.type}`}>
            <Td className="max-w-0 min-w-32 truncate" title={`${task.type} in ${task.queue}`}>
              <JobsLink filter={{ queue: task.queue, task: task.type }} className="font-medium">
                {task.type}
              </JobsLink>{" "}
              <span className="text-xs text-muted">{task.queue}</span>
            </Td>
            <Td className="tabular-nums text-right whitespace-nowrap">
              {isSlowest ? span(task.run.p50_ms) : formatShort(task.failed + task.stalled)}
            </Td>
            <Td className="tabular-nums text-right whitespace-nowrap">
              {isSlowest ? span(task.run.p95_ms) : formatPercent(task.failure_rate ?? 0)}
            </Td>
            <Td className="tabular-nums text-right whitespace-nowrap">{formatShort(task.started)}</Td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

function span(ms: number | null): string {
  return ms === null ? "–" : formatDuration(ms);
}
