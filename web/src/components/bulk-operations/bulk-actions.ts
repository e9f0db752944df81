/** The bulk actions: their texts, and the job states that allow them. */

import type { BulkAction } from "@/api/bulk-operations";
import type { JobState } from "@/lib/job-and-workflow-states";

interface BulkActionInfo {
  /** Text of the button. */
  readonly verb: string;
  /** "Cancelling 3 of 12". */
  readonly doing: string;
  /** "12 jobs cancelled". */
  readonly done: string;
  /** Description of the effect, one sentence. */
  readonly meaning: string;
  readonly isDangerous: boolean;
  readonly states: readonly JobState[];
}

const WAITING_STATES: readonly JobState[] = ["SCHEDULED", "BLOCKED", "PENDING"];
const ALL_STATES: readonly JobState[] = [...WAITING_STATES, "PROCESSING", "COMPLETED", "FAILED", "CANCELLED"];

export const BULK_ACTIONS: Readonly<Record<BulkAction, BulkActionInfo>> = {
  cancel: {
    verb: "Cancel",
    doing: "Cancelling",
    done: "cancelled",
    meaning: "Waiting jobs will not run; running handlers are asked to stop.",
    isDangerous: true,
    states: [...WAITING_STATES, "PROCESSING"],
  },
  redrive: {
    verb: "Redrive",
    doing: "Redriving",
    done: "redriven",
    meaning: "Each job is retried from attempt 1.",
    isDangerous: false,
    states: ["FAILED"],
  },
  update: {
    verb: "Change",
    doing: "Changing",
    done: "changed",
    meaning: "Only waiting jobs can be changed.",
    isDangerous: false,
    states: WAITING_STATES,
  },
  delete: {
    verb: "Delete",
    doing: "Deleting",
    done: "deleted",
    meaning: "Jobs are removed with their data, results and logs. This cannot be undone.",
    isDangerous: true,
    states: ALL_STATES,
  },
};
