/** What surrounds a queue or a task: its tasks, the workers that serve it, its schedules. */

import { Link } from "@tanstack/react-router";

import type { LoadDetail, ScheduleLine, ServingWorker } from "@/api/queue-and-task-detail";
import { Badge, JobStateBadge } from "@/components/badges";
import { JobLink, JobsLink } from "@/components/job-links";
import { RelativeTime } from "@/components/relative-time-and-duration";
import { Table, Td, Th } from "@/components/table";
import { durationUnit, formatInUnit } from "@/lib/format-durations-in-one-unit";
import { formatPercent, formatShort } from "@/lib/format-number";

const LINK = "font-medium hover:underline";

/** The tasks of a queue in the last hour. */
export function TaskTable({ queue, tasks }: { queue: string; tasks: NonNullable<LoadDetail["tasks"]> }) {
  const unit = durationUnit(tasks.map(({ run }) => run.p95_ms));
  return (
    <Table label="Tasks, last hour">
      <thead>
        <tr>
          <Th>Task</Th>
          <Th className="text-right">Started</Th>
          <Th className="text-right">Failed</Th>
          <Th className="text-right">p95</Th>
        </tr>
      </thead>
      <tbody>
        {tasks.map((task) => (
          <tr key={task.type}>
            <Td className="max-w-0 min-w-32 truncate">
              <Link to="/tasks/$name" params={{ name: task.type }} search={{ queue }} className={LINK}>
                {task.type}
              </Link>
            </Td>
            <Td className="text-right">
              <JobsLink filter={{ queue, task: task.type, since: "1h" }}>{formatShort(task.started)}</JobsLink>
            </Td>
            <Td className="text-right">
              <JobsLink filter={{ queue, task: task.type, state: "FAILED" }}>
                {formatShort(task.failed)}
                {task.failure_rate !== null && task.failed > 0 && ` (${formatPercent(task.failure_rate)})`}
              </JobsLink>
            </Td>
            <Td className="tabular-nums text-right whitespace-nowrap">
              {task.run.p95_ms === null ? "–" : formatInUnit(task.run.p95_ms, unit)}
            </Td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

export function ServingWorkerTable({ workers }: { workers: readonly ServingWorker[] }) {
  return (
    <Table label="Workers">
      <thead>
        <tr>
          <Th>Worker</Th>
          <Th>State</Th>
          <Th className="text-right">Busy</Th>
          <Th>Version</Th>
        </tr>
      </thead>
      <tbody>
        {workers.map((worker) => (
          <tr key={worker.id}>
            <Td className="max-w-0 min-w-32 truncate" title={worker.id}>
              <Link to="/workers" hash={worker.id} className={LINK}>
                {worker.name || worker.id}
              </Link>{" "}
              <span className="text-xs text-muted">{worker.host}</span>
            </Td>
            <Td>
              {worker.status === "DEAD" ? (
                <Badge className="bg-failed-soft text-failed">dead</Badge>
              ) : (
                <Badge>{worker.state}</Badge>
              )}
            </Td>
            <Td className="text-right whitespace-nowrap">
              <JobsLink filter={{ worker: worker.id, state: "PROCESSING" }}>
                {worker.busy} of {worker.slots}
              </JobsLink>
            </Td>
            <Td className="font-mono text-xs">{worker.code_version ?? "–"}</Td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

export function ScheduleTable({ schedules }: { schedules: readonly ScheduleLine[] }) {
  return (
    <Table label="Schedules">
      <thead>
        <tr>
          <Th>Schedule</Th>
          <Th>Rule</Th>
          <Th>Last run</Th>
          <Th>Next run</Th>
        </tr>
      </thead>
      <tbody>
        {schedules.map((schedule) => {
          const name = schedule.id.slice(schedule.id.lastIndexOf(":") + 1);
          return (
            <tr key={schedule.id}>
              <Td className="max-w-0 min-w-28 truncate" title={schedule.id}>
                <Link to="/schedules" search={{ text: name }} className={LINK}>
                  {name}
                </Link>
              </Td>
              <Td className="text-muted">{schedule.words}</Td>
              <Td className="whitespace-nowrap">
                {schedule.last_job === null ? (
                  <RelativeTime at={schedule.last_run} />
                ) : (
                  <JobLink id={schedule.last_job} className="link">
                    <RelativeTime at={schedule.last_run} />
                  </JobLink>
                )}{" "}
                {schedule.last_status !== null && <JobStateBadge state={schedule.last_status} />}
              </Td>
              <Td className="text-muted">{schedule.is_paused ? "paused" : <RelativeTime at={schedule.next_run} />}</Td>
            </tr>
          );
        })}
      </tbody>
    </Table>
  );
}
