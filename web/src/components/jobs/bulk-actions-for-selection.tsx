/** Which bulk actions a selection of jobs allows, and the target of each. */

import type { BulkAction } from "@/api/bulk-operations";
import type { Job } from "@/api/job-list";
import { BULK_ACTIONS } from "@/components/bulk-operations/bulk-actions";
import type { DialogTarget } from "@/components/bulk-operations/bulk-operation-dialog";
import { JOB_STATES, type JobState } from "@/lib/job-and-workflow-states";
import { formatToken, toTokens, toWhere, type Filter } from "@/lib/job-filter";
import { runKey } from "@/lib/run-key";
import { serverNow } from "@/lib/server-clock";
import type { Selection } from "@/lib/use-row-selection";

/** Actions that at least one selected job allows. */
export function allowedActions(selection: Selection, rows: readonly Job[], filter: Filter): BulkAction[] {
  const states = selectedStates(selection, rows, filter);
  return (Object.keys(BULK_ACTIONS) as BulkAction[]).filter((action) =>
    BULK_ACTIONS[action].states.some((state) => states.includes(state)),
  );
}

function selectedStates(selection: Selection, rows: readonly Job[], { state }: Filter): readonly JobState[] {
  if (selection.isAll) return state === undefined ? JOB_STATES : [state];
  // Usually nothing is selected: then the rows, which may be many, are not searched.
  if (selection.keys.size === 0) return [];
  return rows.filter((job) => selection.keys.has(runKey(job))).map((job) => job.status);
}

/** The selected jobs that allow the action, or the filter where all matching jobs are selected. */
export function actionTarget(
  action: BulkAction,
  selection: Selection,
  rows: readonly Job[],
  filter: Filter,
): DialogTarget {
  if (selection.isAll) {
    return {
      kind: "matching",
      where: toWhere(filter, serverNow()),
      words: <code className="font-mono text-xs break-all">{toTokens(filter).map(formatToken).join(" ")}</code>,
    };
  }
  const { states } = BULK_ACTIONS[action];
  const allowed = rows.filter((job) => selection.keys.has(runKey(job)) && states.includes(job.status));
  return { kind: "selected", ids: allowed.map(runKey) };
}
