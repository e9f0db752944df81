import type { UseQueryResult } from "@tanstack/react-query";

import type { Purge } from "@/api/purge-queue";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { formatCount, formatPlural } from "@/lib/format-number";

interface PurgeQueueDialogProps {
  queue: string;
  /** Number of jobs that would be deleted. */
  counted: UseQueryResult<Purge>;
  isBusy: boolean;
  error: unknown;
  onClose: () => void;
  onConfirm: () => void;
}

/** Purging cannot be undone: the queue's name must be typed. */
export function PurgeQueueDialog({ queue, counted, isBusy, error, onClose, onConfirm }: PurgeQueueDialogProps) {
  const waiting = counted.data?.waiting;
  return (
    <ConfirmDialog
      isOpen
      onClose={onClose}
      title={`Purge ${queue}?`}
      verb={waiting === undefined ? "Purge" : `Delete ${formatPlural(waiting, "job")}`}
      isDangerous
      requiredText={queue}
      isBusy={isBusy || waiting === undefined}
      error={error ?? counted.error}
      onConfirm={() => waiting !== undefined && onConfirm()}
    >
      {waiting === undefined ? (
        "Counting waiting jobs…"
      ) : (
        <>
          <strong className="tabular-nums text-text">{formatCount(waiting)}</strong> waiting{" "}
          {waiting === 1 ? "job" : "jobs"} (pending, scheduled and blocked) will be deleted. This cannot be undone.
          Running and finished jobs are kept.
        </>
      )}
    </ConfirmDialog>
  );
}
