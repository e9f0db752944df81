import type { UseQueryResult } from "@tanstack/react-query";

import type { Purge } from "@/api/queues";
import { Confirm } from "@/components/dialog";
import { count, plural } from "@/lib/numbers";

interface PurgeDialogProps {
  queue: string;
  /** What would be deleted, as the server counted it. */
  counted: UseQueryResult<Purge>;
  isBusy: boolean;
  error: unknown;
  onClose: () => void;
  onConfirm: () => void;
}

/** What cannot be undone is typed. */
export function PurgeDialog({ queue, counted, isBusy, error, onClose, onConfirm }: PurgeDialogProps) {
  const waiting = counted.data?.waiting;
  return (
    <Confirm
      isOpen
      onClose={onClose}
      title={`Purge ${queue}?`}
      verb={waiting === undefined ? "Purge" : `Delete ${plural(waiting, "job")}`}
      isDangerous
      typed={queue}
      isBusy={isBusy || waiting === undefined}
      error={error ?? counted.error}
      onConfirm={() => waiting !== undefined && onConfirm()}
    >
      {waiting === undefined ? (
        "Counting what waits…"
      ) : (
        <>
          <strong className="figures text-text">{count(waiting)}</strong> waiting {waiting === 1 ? "job" : "jobs"}{" "}
          (pending, scheduled and blocked) will be deleted. This cannot be undone. Running jobs, and those that have
          ended, stay.
        </>
      )}
    </Confirm>
  );
}
