import { linkOptions } from "@tanstack/react-router";

import type { Finding } from "@/api/finding-acknowledgement";
import type { WorkflowState } from "@/lib/job-and-workflow-states";
import type { WorkflowsSearch } from "@/routes/workflows.search-params";

/** The page where a finding is examined and solved; a store at risk has none. */
export function findingLink({ kind, queue, task, job, schedule, names }: Finding) {
  switch (kind) {
    case "server":
      return null;
    case "slow_task":
    case "paused_task":
      return task === null ? toQueue(queue) : linkOptions({ to: "/tasks/$name", params: { name: task } });
    case "slow_queue":
    case "long_wait":
    case "growing_backlog":
    case "saturated":
    case "error_rate":
    case "unserved_queue":
    case "paused_queue":
      return toQueue(queue);
    case "long_running_job":
      return job === null ? toQueue(queue) : toJob(job);
    case "blocked_lock":
      return job === null ? linkOptions({ to: "/locks" }) : toJob(job);
    case "missed_schedule":
    case "failed_schedule":
    case "orphaned_schedule":
      return linkOptions({ to: "/schedules", search: { text: schedule?.split(":").at(-1) } });
    case "scaling":
      return linkOptions({ to: "/scaling" });
    case "parked_workflows":
      return toWorkflows(names, "PARKED");
    case "held_workflows":
      return toWorkflows(names, "FAILED");
    case "dead_letters":
      return linkOptions({ to: "/dead", search: { queue: queue ?? undefined } });
    case "dead_worker":
      return linkOptions({ to: "/workers" });
  }
}

function toQueue(queue: string | null) {
  return queue === null
    ? linkOptions({ to: "/queues" })
    : linkOptions({ to: "/queues/$name", params: { name: queue } });
}

function toJob(id: string) {
  return linkOptions({ to: "/jobs/$id", params: { id } });
}

function toWorkflows(names: readonly string[], state: WorkflowState) {
  const [only] = names;
  const search: WorkflowsSearch = { state };
  return names.length === 1 && only !== undefined
    ? linkOptions({ to: "/workflows/$id", params: { id: only } })
    : linkOptions({ to: "/workflows", search });
}
