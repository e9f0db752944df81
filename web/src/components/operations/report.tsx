import { Link } from "@tanstack/react-router";

import type { Action, Operation } from "@/api/operations";
import { Meter } from "@/components/meter";
import { ACTIONS } from "@/components/operations/words";
import { count, plural } from "@/lib/numbers";

interface ProgressProps {
  action: Action;
  operation: Operation;
  /** How many it will be done to, where they were counted. */
  matched: number | null;
}

/** How far it has come. */
export function OperationProgress({ action, operation, matched }: ProgressProps) {
  const handled = operation.done + operation.failed;
  const total = Math.max(matched ?? operation.expected, handled);
  return (
    <div role="status" className="flex flex-col gap-2">
      <p className="figures">
        {ACTIONS[action].doing} {count(handled)}
        {total > 0 && ` of ${count(total)}`}
      </p>
      <Meter value={(handled / Math.max(1, total)) * 100} label={ACTIONS[action].doing} />
    </div>
  );
}

/** What it did, and what it could not do. */
export function OperationReport({ action, operation }: { action: Action; operation: Operation }) {
  const { done, failed, failures, matched, chosen, state } = operation;
  const isStopped = state === "STOPPED";
  const passedOver = chosen === null || isStopped ? 0 : chosen - matched;
  return (
    <div role="status" className="flex flex-col gap-2">
      <p>
        {isStopped && "Stopped before its end: "}
        {plural(done, "job")} {ACTIONS[action].done}
        {failed > 0 && <span className="text-failed">, {count(failed)} could not be</span>}.
        {passedOver > 0 && ` ${count(passedOver)} of those chosen had gone, or had come into another state.`}
      </p>
      {failures.length > 0 && (
        <ul className="max-h-56 overflow-y-auto rounded-md border text-[13px]" tabIndex={0} aria-label="Could not be">
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
            <li className="px-3 py-1.5 text-muted">and {count(failed - failures.length)} more</li>
          )}
        </ul>
      )}
    </div>
  );
}
