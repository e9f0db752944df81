import { Link } from "@tanstack/react-router";

import type { TaskMetrics } from "@/api/metrics-history";
import { JobsLink } from "@/components/job-links";
import { Table, Td, Th } from "@/components/table";
import { durationUnit, formatInUnit, type DurationUnit } from "@/lib/format-durations-in-one-unit";
import { formatPercent, formatShort } from "@/lib/format-number";

interface TaskTableProps {
  label: string;
  tasks: readonly TaskMetrics[];
  order: "slowest" | "failing";
}

/** The slowest or the most failing tasks. */
export function SlowestOrFailingTasksTable({ label, tasks, order }: TaskTableProps) {
  const isSlowest = order === "slowest";
  const units = { p50: unitOf(tasks, "p50_ms"), p95: unitOf(tasks, "p95_ms") };
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
              <Link
                to="/tasks/$name"
                params={{ name: task.type }}
                search={{ queue: task.queue }}
                className="font-medium hover:underline"
              >
                {task.type}
              </Link>{" "}
              <span className="text-xs text-muted">{task.queue}</span>
            </Td>
            <Td className="tabular-nums text-right whitespace-nowrap">
              {isSlowest ? span(task.run.p50_ms, units.p50) : formatShort(task.failed + task.stalled)}
            </Td>
            <Td className="tabular-nums text-right whitespace-nowrap">
              {isSlowest ? span(task.run.p95_ms, units.p95) : formatPercent(task.failure_rate ?? 0)}
            </Td>
            <Td className="tabular-nums text-right whitespace-nowrap">
              <JobsLink filter={{ queue: task.queue, task: task.type }}>{formatShort(task.started)}</JobsLink>
            </Td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

function unitOf(tasks: readonly TaskMetrics[], name: "p50_ms" | "p95_ms"): DurationUnit {
  return durationUnit(tasks.map(({ run }) => run[name]));
}

function span(ms: number | null, unit: DurationUnit): string {
  return ms === null ? "–" : formatInUnit(ms, unit);
}
