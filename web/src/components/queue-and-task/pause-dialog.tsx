import { ConfirmDialog } from "@/components/confirm-dialog";

interface PauseDialogProps {
  /** "mail", "send_mail in all queues". */
  name: string;
  /** "jobs of this queue". */
  jobs: string;
  isBusy: boolean;
  error: unknown;
  onClose: () => void;
  onPause: () => void;
}

/** Asks before a queue or a task is paused. */
export function PauseDialog({ name, jobs, isBusy, error, onClose, onPause }: PauseDialogProps) {
  return (
    <ConfirmDialog
      isOpen
      onClose={onClose}
      title={`Pause ${name}?`}
      verb="Pause"
      isBusy={isBusy}
      error={error}
      onConfirm={onPause}
    >
      No {jobs} start on any worker until it is resumed. Running jobs continue, and new jobs can be enqueued.
    </ConfirmDialog>
  );
}
