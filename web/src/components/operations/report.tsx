import { Link } from "@tanstack/react-router";

import type { Action, Operation } from "@/api/operations";
import { Meter } from "@/components/meter";
import { ACTIONS } from "@/components/operations/words";
import { count, plural } from "@/lib/numbers";

export interface Progress {
  readonly done: number;
  readonly failed: number;
  readonly total: number;
  readonly failures: Operation["failures"];
}

/** How far it has come. */
export function OperationProgress({ action, progress }: { action: Action; progress: Progress }) {
  const handled = progress.done + progress.failed;
  return (
    <div role="status" className="flex flex-col gap-2">
      <p className="figures">
        {ACTIONS[action].doing} {count(handled)}
        {progress.total > 0 && ` of ${count(Math.max(progress.total, handled))}`}
      </p>
      <Meter value={(handled / Math.max(1, progress.total)) * 100} label={ACTIONS[action].doing} />
    </div>
  );
}

/** What it did, and what it could not do. */
export function OperationReport({
  action,
  progress,
  isStopped,
}: {
  action: Action;
  progress: Progress;
  isStopped: boolean;
}) {
  return (
    <div role="status" className="flex flex-col gap-2">
      <p>
        {isStopped && "Stopped before its end: "}
        {plural(progress.done, "job")} {ACTIONS[action].done}
        {progress.failed > 0 && <span className="text-failed">, {count(progress.failed)} could not be</span>}.
      </p>
      {progress.failures.length > 0 && (
        <ul className="max-h-56 overflow-y-auto rounded-md border text-[13px]" tabIndex={0} aria-label="Could not be">
          {progress.failures.map((failure) => (
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
          {progress.failed > progress.failures.length && (
            <li className="px-3 py-1.5 text-muted">and {count(progress.failed - progress.failures.length)} more</li>
          )}
        </ul>
      )}
    </div>
  );
}
