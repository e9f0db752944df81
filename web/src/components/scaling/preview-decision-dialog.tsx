import { useId, useState } from "react";

import type { ScalingDryRun, ScalingSettings } from "@/api/scaling";
import { Button } from "@/components/buttons";
import { Dialog } from "@/components/dialog";
import { WorkerLimitFields } from "@/components/scaling/worker-limit-fields";
import { formatPlural, formatShort } from "@/lib/format-number";
import { formatDuration } from "@/lib/format-time";
import { checkWorkerLimits, type WorkerLimits } from "@/lib/worker-limits";

interface DryRunDialogProps {
  settings: ScalingSettings;
  /** Undefined until the planner has answered. */
  result: ScalingDryRun | undefined;
  isBusy: boolean;
  error: unknown;
  onClose: () => void;
  onRun: (limits: WorkerLimits) => void;
}

/** What the autoscaler would decide now, also with other limits. Nothing is launched or drained. */
export function DryRunDialog({ settings, result, isBusy, error, onClose, onRun }: DryRunDialogProps) {
  const form = useId();
  const [draft, setDraft] = useState({
    min: String(settings.min_workers ?? 0),
    max: String(settings.max_workers ?? 10),
  });
  const checked = checkWorkerLimits(draft);
  return (
    <Dialog
      isOpen
      onClose={onClose}
      title="Dry run"
      description="What the autoscaler would decide now. Nothing is launched, drained or stored."
      actions={
        <>
          <Button onClick={onClose}>Close</Button>
          <Button type="submit" form={form} variant="primary" disabled={checked.limits === null} isBusy={isBusy}>
            Run again
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-4">
        <div role="status" aria-busy={isBusy} className="min-h-28 rounded-md bg-sunken px-3 py-2.5">
          {error instanceof Error ? (
            <p className="text-failed">{error.message}</p>
          ) : result === undefined ? (
            <p className="text-muted">The planner is asked…</p>
          ) : (
            <Result result={result} />
          )}
        </div>
        <form
          id={form}
          noValidate
          onSubmit={(event) => {
            event.preventDefault();
            if (checked.limits !== null && !isBusy) onRun(checked.limits);
          }}
        >
          <p className="mb-2 text-xs text-muted">With these limits:</p>
          <WorkerLimitFields draft={draft} checked={checked} onChange={setDraft} />
        </form>
      </div>
    </Dialog>
  );
}

function Result({ result }: { result: ScalingDryRun }) {
  const { decision } = result;
  const wait = decision.oldest_wait_ms === null ? "" : `, oldest wait ${formatDuration(decision.oldest_wait_ms)}`;
  return (
    <>
      <p className="font-medium">{summary(result)}</p>
      {decision.reasons.map((reason) => (
        <p key={reason} className="mt-1 break-words">
          {reason}
        </p>
      ))}
      {decision.drained.length > 0 && (
        <p className="mt-1 text-xs break-all text-muted">
          leaving: <span className="font-mono">{decision.drained.join(", ")}</span>
        </p>
      )}
      <p className="tabular-nums mt-2 text-xs text-muted">
        Observed: {decision.running} running, {decision.booting} booting, {decision.draining} draining;{" "}
        {formatShort(decision.backlog)} pending{wait}. Policy {result.policy}, {result.min_workers} to{" "}
        {formatPlural(result.max_workers, "worker")}.
      </p>
    </>
  );
}

/** "It would launch 3 workers and drain 1 worker, for a pool of 5." */
function summary({ launch, drain, replace, decision }: ScalingDryRun): string {
  if (decision.is_hold) return "It would hold: nothing changes.";
  const parts = [
    ...(launch > 0 ? [`launch ${formatPlural(launch, "worker")}`] : []),
    ...(drain > 0 ? [`drain ${formatPlural(drain, "worker")}`] : []),
    ...(replace > 0 ? [`remove ${formatPlural(replace, "broken machine")}`] : []),
  ];
  const pool = `for a pool of ${formatPlural(decision.wanted, "worker")}`;
  if (parts.length === 0)
    return `It would change nothing: the pool stays at ${formatPlural(decision.wanted, "worker")}.`;
  const last = parts.pop();
  return `It would ${parts.length > 0 ? `${parts.join(", ")} and ${last}` : last}, ${pool}.`;
}
