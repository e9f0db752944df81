import type { ReactNode } from "react";

import type { LoadDetail } from "@/api/queue-and-task-detail";
import { Panel } from "@/components/panel";
import { ErrorTable } from "@/components/queue-and-task/error-table";
import { JobLineTable } from "@/components/queue-and-task/job-line-table";
import { LoadTiles } from "@/components/queue-and-task/load-tiles";
import { ScheduleTable, ServingWorkerTable, TaskTable } from "@/components/queue-and-task/serving-tables";
import { UsualComparison } from "@/components/queue-and-task/usual-comparison";
import type { JobsSearch } from "@/routes/jobs.search-params";

interface LoadDetailViewProps {
  detail: LoadDetail;
  filter: JobsSearch;
  /** The findings with their actions. */
  attention: ReactNode;
  /** The charts, with their own range. */
  charts: ReactNode;
}

/** The content of the queue page and of the task page. */
export function LoadDetailView({ detail, filter, attention, charts }: LoadDetailViewProps) {
  const { queue, tasks, errors, slowest, latest, longest_running, workers, schedules } = detail;
  const isQueue = queue !== undefined;
  return (
    <>
      <UsualComparison detail={detail} />
      {attention}
      <LoadTiles detail={detail} filter={filter} />
      {charts}
      <Panel title="Failures by error" isFlush>
        {errors.length > 0 ? <ErrorTable errors={errors} filter={filter} /> : <Empty>No failed jobs are stored.</Empty>}
      </Panel>
      <div className="grid gap-4 lg:grid-cols-2">
        <JobPanel title="Longest running now" jobs={longest_running} hasTasks={isQueue}>
          Nothing is running.
        </JobPanel>
        <JobPanel title="Slowest of the latest runs" jobs={slowest} hasTasks={isQueue}>
          No finished job is stored.
        </JobPanel>
        <JobPanel title="Latest jobs" jobs={latest} hasTasks={isQueue}>
          No finished job is stored.
        </JobPanel>
        {isQueue && tasks !== undefined && (
          <Panel title="Tasks, last hour" isFlush>
            {tasks.length > 0 ? (
              <TaskTable queue={queue.name} tasks={tasks} />
            ) : (
              <Empty>No job was enqueued or run in the last hour.</Empty>
            )}
          </Panel>
        )}
        <Panel title="Workers" isFlush>
          {workers.length > 0 ? (
            <ServingWorkerTable workers={workers} />
          ) : (
            <Empty>No worker serves it: its jobs wait until one is started.</Empty>
          )}
        </Panel>
        <Panel title="Schedules" isFlush>
          {schedules.length > 0 ? (
            <ScheduleTable schedules={schedules} />
          ) : (
            <Empty>No schedule enqueues its jobs.</Empty>
          )}
        </Panel>
      </div>
    </>
  );
}

interface JobPanelProps {
  title: string;
  jobs: LoadDetail["latest"];
  hasTasks: boolean;
  /** Shown without jobs. */
  children: ReactNode;
}

function JobPanel({ title, jobs, hasTasks, children }: JobPanelProps) {
  return (
    <Panel title={title} isFlush>
      {jobs.length > 0 ? <JobLineTable label={title} jobs={jobs} hasTasks={hasTasks} /> : <Empty>{children}</Empty>}
    </Panel>
  );
}

function Empty({ children }: { children: ReactNode }) {
  return <p className="px-4 py-6 text-center text-muted">{children}</p>;
}
