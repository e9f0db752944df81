import type { Operation } from "@/api/bulk-operations";
import { BULK_ACTIONS } from "@/components/bulk-operations/bulk-actions";
import { Button } from "@/components/buttons";
import { ProgressBar } from "@/components/progress-bar";
import { formatCount } from "@/lib/format-number";

/** The running bulk operations of all users, with a button to stop each. */
export function RunningOperationsList({
  operations,
  mayStop,
  onStop,
}: {
  operations: readonly Operation[];
  mayStop: boolean;
  onStop: (id: string) => void;
}) {
  if (operations.length === 0) return null;
  return (
    <ul aria-label="Running operations" className="flex flex-col gap-1 rounded-lg border bg-surface px-4 py-2">
      {operations.map((operation) => (
        <li key={operation.id} className="flex flex-wrap items-center gap-x-4 gap-y-1">
          <span className="tabular-nums">
            {BULK_ACTIONS[operation.action].doing}: {formatCount(operation.done + operation.failed)} so far
          </span>
          <ProgressBar
            value={((operation.done + operation.failed) / Math.max(1, operation.expected)) * 100}
            label={BULK_ACTIONS[operation.action].doing}
            className="w-40"
          />
          {mayStop && (
            <Button
              variant="quiet"
              className="h-7"
              isBusy={operation.state === "STOPPING"}
              onClick={() => onStop(operation.id)}
            >
              Stop
            </Button>
          )}
        </li>
      ))}
    </ul>
  );
}
