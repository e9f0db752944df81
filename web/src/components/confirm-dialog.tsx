import { useState, type ReactNode } from "react";

import { Button } from "@/components/buttons";
import { Dialog } from "@/components/dialog";
import { TextField } from "@/components/form-fields";

interface ConfirmDialogProps {
  isOpen: boolean;
  onClose: () => void;
  /** A question: "Delete mail:welcome-7?" */
  title: string;
  /** What will happen, and to how many jobs. */
  children: ReactNode;
  /** The text of the button: "Delete", "Purge 1,204 jobs". */
  verb: string;
  isDangerous?: boolean;
  /** Text that must be typed to enable the button: for irreversible actions on many jobs. */
  requiredText?: string;
  /** Fields above the buttons. */
  fields?: ReactNode;
  isBusy?: boolean;
  error?: unknown;
  onConfirm: () => void;
}

/** Asks for confirmation of an action and names what it affects. */
export function ConfirmDialog(props: ConfirmDialogProps) {
  const {
    isOpen,
    onClose,
    title,
    children,
    verb,
    isDangerous = false,
    requiredText,
    fields,
    isBusy = false,
    error,
    onConfirm,
  } = props;
  const [text, setText] = useState("");
  const isReady = requiredText === undefined || text === requiredText;
  return (
    <Dialog
      isOpen={isOpen}
      onClose={() => {
        setText("");
        onClose();
      }}
      title={title}
      description={children}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button variant={isDangerous ? "danger" : "primary"} disabled={!isReady} isBusy={isBusy} onClick={onConfirm}>
            {verb}
          </Button>
        </>
      }
    >
      {fields}
      {requiredText !== undefined && (
        <TextField
          label={`Type ${requiredText} to confirm`}
          value={text}
          onChange={setText}
          autoComplete="off"
          spellCheck={false}
          onKeyDown={(event) => {
            if (event.key === "Enter" && isReady) onConfirm();
          }}
        />
      )}
      {error !== undefined && error !== null && (
        <p role="alert" className="mt-2 text-failed">
          {error instanceof Error ? error.message : "The request failed"}
        </p>
      )}
    </Dialog>
  );
}
