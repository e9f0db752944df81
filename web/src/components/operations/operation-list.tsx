/** Bulk operations with their target, progress and outcome, newest first. */

import { Link } from "@tanstack/react-router";

import { isRunning, type Operation } from "@/api/bulk-operations";
import { Badge } from "@/components/badges";
import { BULK_ACTIONS } from "@/components/bulk-operations/bulk-actions";
import { Button } from "@/components/buttons";
import { ProgressBar } from "@/components/progress-bar";
import { RelativeTime } from "@/components/relative-time-and-duration";
import { operationTarget } from "@/lib/operation-target";
import { formatCount, formatPlural } from "@/lib/format-number";
import { formatOutcome } from "@/lib/redrive-outcome";

const STATES: Record<Operation["state"], readonly [label: string, look: string]> = {
  RUNNING: ["running", "bg-processing-soft text-processing"],
  STOPPING: ["stopping", "bg-blocked-soft text-blocked"],
  STOPPED: ["stopped", "bg-cancelled-soft text-cancelled"],
  COMPLETED: ["done", "bg-completed-soft text-completed"],
};

interface OperationListProps {
  operations: readonly Operation[];
  /** Undefined if the user's role does not allow it. */
  onStop?: (id: string) => void;
}

export function OperationList({ operations, onStop }: OperationListProps) {
  return (
    <ul aria-label="Operations" className="divide-y rounded-lg border bg-surface">
      {operations.map((operation) => (
        <li key={operation.id} className="flex flex-wrap items-center gap-x-6 gap-y-2 px-4 py-3">
          <OperationSummary operation={operation} />
          {isRunning(operation) && (
            <ProgressBar
              value={((operation.done + operation.failed) / Math.max(1, operation.expected)) * 100}
              label={BULK_ACTIONS[operation.action].doing}
              className="w-40"
            />
          )}
          {isRunning(operation) && onStop && (
            <Button isBusy={operation.state === "STOPPING"} onClick={() => onStop(operation.id)}>
              Stop
            </Button>
          )}
        </li>
      ))}
    </ul>
  );
}

function OperationSummary({ operation }: { operation: Operation }) {
  const { action, state, done, failed, outcome } = operation;
  const words = BULK_ACTIONS[action];
  const [label, look] = STATES[state];
  const target = operationTarget(operation);
  return (
    <div className="min-w-0 flex-1 basis-72">
      <p className="flex flex-wrap items-center gap-2">
        <span className="font-medium">{words.verb}</span>
        <Badge className={look}>{label}</Badge>
        {target.search === null ? (
          <span className="text-[13px]">{target.words}</span>
        ) : (
          <Link to="/jobs" search={target.search} className="link min-w-0 text-[13px] break-all">
            {target.words}
          </Link>
        )}
      </p>
      <p className="tabular-nums text-[13px] break-words">
        {formatPlural(done, "job")} {words.done}
        {failed > 0 && <span className="text-failed">, {formatCount(failed)} refused</span>}
        {outcome && <span className="font-medium">: {formatOutcome(outcome)}</span>}
      </p>
      <p className="text-xs text-muted">
        {operation.by && `by ${operation.by}, `}
        started <RelativeTime at={operation.created_at} />
        {operation.ended_at !== null && (
          <>
            , ended <RelativeTime at={operation.ended_at} />
          </>
        )}
        {operation.per_second !== null && `, at most ${operation.per_second} jobs per second`}
      </p>
    </div>
  );
}
