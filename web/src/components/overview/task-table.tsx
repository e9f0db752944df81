import type { TaskFigures } from "@/api/overview";
import { JobsLink } from "@/components/links";
import { Table, Td, Th } from "@/components/table";
import { percent, short } from "@/lib/numbers";
import { duration } from "@/lib/time";

interface TaskTableProps {
  label: string;
  tasks: readonly TaskFigures[];
  order: "slowest" | "failing";
}

/** The tasks that take longest, or fail most. */
export function TaskTable({ label, tasks, order }: TaskTableProps) {
  const isSlowest = order === "slowest";
  return (
    <Table label={label}>
      <thead>
        <tr>
          <Th>Task</Th>
          <Th className="text-right">{isSlowest ? "p50" : "Failed"}</Th>
          <Th className="text-right">{isSlowest ? "p95" : "Share"}</Th>
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
            <Td className="figures text-right whitespace-nowrap">
              {isSlowest ? span(task.run.p50_ms) : short(task.failed)}
            </Td>
            <Td className="figures text-right whitespace-nowrap">
              {isSlowest ? span(task.run.p95_ms) : percent(task.failure_rate ?? 0)}
            </Td>
            <Td className="figures text-right whitespace-nowrap">{short(task.started)}</Td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

function span(ms: number | null): string {
  return ms === null ? "–" : duration(ms);
}
