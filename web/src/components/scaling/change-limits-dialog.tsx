import { useId, useState } from "react";

import type { ScalingChange, ScalingSettings } from "@/api/scaling";
import { Button } from "@/components/buttons";
import { Dialog } from "@/components/dialog";
import { WorkerLimitFields } from "@/components/scaling/worker-limit-fields";
import { checkWorkerLimits } from "@/lib/worker-limits";

interface ChangeLimitsDialogProps {
  settings: ScalingSettings;
  isBusy: boolean;
  error: unknown;
  onClose: () => void;
  onChange: (change: ScalingChange) => void;
}

/** Changes the least and the greatest number of workers, or restores those the autoscaler was started with. */
export function ChangeLimitsDialog({ settings, isBusy, error, onClose, onChange }: ChangeLimitsDialogProps) {
  const form = useId();
  const [draft, setDraft] = useState({
    min: String(settings.min_workers ?? 0),
    max: String(settings.max_workers ?? 10),
  });
  const checked = checkWorkerLimits(draft);
  const isChanged = settings.changed.some((name) => name === "min_workers" || name === "max_workers");
  return (
    <Dialog
      isOpen
      onClose={onClose}
      title="Change the limits?"
      description="The autoscaler follows them at once, and after a restart. Fewer workers drain: they finish their jobs first."
      actions={
        <>
          {isChanged && (
            <Button
              variant="quiet"
              className="mr-auto"
              isBusy={isBusy}
              onClick={() => onChange({ min_workers: null, max_workers: null })}
            >
              Restore start values
            </Button>
          )}
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" form={form} variant="primary" disabled={checked.limits === null} isBusy={isBusy}>
            Change limits
          </Button>
        </>
      }
    >
      <form
        id={form}
        className="flex flex-col gap-3"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          if (checked.limits !== null && !isBusy) onChange(checked.limits);
        }}
      >
        <WorkerLimitFields draft={draft} checked={checked} onChange={setDraft} />
        {error instanceof Error && (
          <p role="alert" className="text-failed">
            {error.message}
          </p>
        )}
      </form>
    </Dialog>
  );
}
