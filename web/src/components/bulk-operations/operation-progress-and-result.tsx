import { Link } from "@tanstack/react-router";

import type { BulkAction, Operation } from "@/api/bulk-operations";
import { BULK_ACTIONS } from "@/components/bulk-operations/bulk-actions";
import { ProgressBar } from "@/components/progress-bar";
import { formatCount, formatPlural } from "@/lib/format-number";

interface ProgressProps {
  action: BulkAction;
  operation: Operation;
  /** Number of target jobs, if they were counted. */
  matched: number | null;
}

/** A progress bar of the running operation. */
export function OperationProgress({ action, operation, matched }: ProgressProps) {
  const handled = operation.done + operation.failed;
  const total = Math.max(matched ?? operation.expected, handled);
  return (
    <div role="status" className="flex flex-col gap-2">
      <p className="tabular-nums">
        {BULK_ACTIONS[action].doing} {formatCount(handled)}
        {total > 0 && ` of ${formatCount(total)}`}
      </p>
      <ProgressBar value={(handled / Math.max(1, total)) * 100} label={BULK_ACTIONS[action].doing} />
    </div>
  );
}

/** The result: number of changed jobs, and the failures. */
export function OperationResult({ action, operation }: { action: BulkAction; operation: Operation }) {
  const { done, failed, failures, matched, chosen, state } = operation;
  const isStopped = state === "STOPPED";
  const passedOver = chosen === null || isStopped ? 0 : chosen - matched;
  return (
    <div role="status" className="flex flex-col gap-2">
      <p>
        {isStopped && "Stopped early: "}
        {formatPlural(done, "job")} {BULK_ACTIONS[action].done}
        {failed > 0 && <span className="text-failed">, {formatCount(failed)} failed</span>}.
        {passedOver > 0 && ` ${formatPlural(passedOver, "selected job")} no longer existed or had changed state.`}
      </p>
      {failures.length > 0 && (
        <ul className="max-h-56 overflow-y-auto rounded-md border text-[13px]" tabIndex={0} aria-label="Failures">
          {failures.map((failure) => (
            <li key={failure.jobId} className="border-b border-line/60 px-3 py-1.5 last:border-b-0">
              <Link
                to="/jobs/$id"
                params={{ id: failure.jobId }}
                className="font-mono text-xs break-all underline underline-offset-2"
              >
                {failure.jobId}
              </Link>
              <p className="break-words text-muted">{failure.message}</p>
            </li>
          ))}
          {failed > failures.length && (
            <li className="px-3 py-1.5 text-muted">and {formatCount(failed - failures.length)} more</li>
          )}
        </ul>
      )}
    </div>
  );
}
