import { useState } from "react";

import type { Acknowledgement, Finding } from "@/api/finding-acknowledgement";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { SelectField, TextField } from "@/components/form-fields";

const HOUR_S = 3600;
const UNTIL = [
  { value: "", label: "until the problem ends" },
  { value: String(HOUR_S), label: "for 1 hour" },
  { value: String(4 * HOUR_S), label: "for 4 hours" },
  { value: String(24 * HOUR_S), label: "for 1 day" },
  { value: String(7 * 24 * HOUR_S), label: "for 1 week" },
];

interface AcknowledgeDialogProps {
  finding: Finding;
  isBusy: boolean;
  error: unknown;
  onClose: () => void;
  onAcknowledge: (how: Acknowledgement) => void;
}

/** Acknowledges a finding, for a time or until it ends, with a note for colleagues. */
export function AcknowledgeDialog({ finding, isBusy, error, onClose, onAcknowledge }: AcknowledgeDialogProps) {
  const [note, setNote] = useState("");
  const [snooze, setSnooze] = useState("");
  return (
    <ConfirmDialog
      isOpen
      onClose={onClose}
      title="Acknowledge?"
      verb="Acknowledge"
      isBusy={isBusy}
      error={error}
      onConfirm={() => onAcknowledge({ note, ...(snooze === "" ? {} : { snooze_s: Number(snooze) }) })}
      fields={
        <div className="flex flex-col gap-3">
          <TextField label="Note" hint="Optional. Shown to everyone." value={note} maxLength={500} onChange={setNote} />
          <SelectField label="Leave it out of the verdict" value={snooze} onChange={setSnooze} options={UNTIL} />
        </div>
      }
    >
      “{finding.text}” stays in the list, and returns to the verdict if it becomes more severe.
    </ConfirmDialog>
  );
}
