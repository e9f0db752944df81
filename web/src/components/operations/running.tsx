import type { Operation } from "@/api/operations";
import { Button } from "@/components/button";
import { Meter } from "@/components/meter";
import { ACTIONS } from "@/components/operations/words";
import { count } from "@/lib/numbers";

/** What goes on in the background, by whomever it was started; it can be stopped here. */
export function RunningOperations({
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
    <ul aria-label="Operations that go on" className="flex flex-col gap-1 rounded-lg border bg-surface px-4 py-2">
      {operations.map((operation) => (
        <li key={operation.id} className="flex flex-wrap items-center gap-x-4 gap-y-1">
          <span className="figures">
            {ACTIONS[operation.action].doing}: {count(operation.done + operation.failed)} so far
          </span>
          <Meter
            value={((operation.done + operation.failed) / Math.max(1, operation.expected)) * 100}
            label={ACTIONS[operation.action].doing}
            className="w-40"
          />
          {mayStop && (
            <Button
              look="quiet"
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
