import { useState } from "react";

import { ConfirmDialog } from "@/components/confirm-dialog";
import { TextField } from "@/components/form-fields";

interface PauseDialogProps {
  /** "mail", "send_mail in all queues". */
  name: string;
  /** "jobs of this queue". */
  jobs: string;
  isBusy: boolean;
  error: unknown;
  onClose: () => void;
  onPause: (note: string) => void;
}

/** Asks before a queue or a task is paused; the note is shown to everyone. */
export function PauseDialog({ name, jobs, isBusy, error, onClose, onPause }: PauseDialogProps) {
  const [note, setNote] = useState("");
  return (
    <ConfirmDialog
      isOpen
      onClose={onClose}
      title={`Pause ${name}?`}
      verb="Pause"
      isBusy={isBusy}
      error={error}
      onConfirm={() => onPause(note)}
      fields={
        <TextField label="Note" hint="Optional. Shown to everyone." value={note} maxLength={500} onChange={setNote} />
      }
    >
      No {jobs} start on any worker until it is resumed. Running jobs continue, and new jobs can be enqueued.
    </ConfirmDialog>
  );
}
