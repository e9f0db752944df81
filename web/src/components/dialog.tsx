import { X } from "lucide-react";
import { Dialog as Radix } from "radix-ui";
import { useState, type ReactNode } from "react";

import { Button, IconButton } from "@/components/button";
import { TextField } from "@/components/field";
import { classes } from "@/lib/classes";

interface DialogProps {
  isOpen: boolean;
  onClose: () => void;
  title: string;
  /** What it is about, read aloud when it opens. */
  description?: ReactNode;
  children?: ReactNode;
  /** The buttons at its end. */
  actions?: ReactNode;
  className?: string;
}

/** What is to be filled in has the focus; without it, the first button would: the one that closes. */
function focusField(event: Event): void {
  const content = event.currentTarget as HTMLElement;
  const field = content.querySelector<HTMLElement>("input:not([type=checkbox]), textarea, select");
  if (field === null) return;
  event.preventDefault();
  field.focus();
}

export function Dialog({ isOpen, onClose, title, description, children, actions, className }: DialogProps) {
  return (
    <Radix.Root open={isOpen} onOpenChange={(open) => !open && onClose()}>
      <Radix.Portal>
        <Radix.Overlay className="fixed inset-0 z-40 bg-[#000]/50" />
        <Radix.Content
          {...(description === undefined ? { "aria-describedby": undefined } : {})}
          onOpenAutoFocus={focusField}
          className={classes(
            "fixed top-[12vh] left-1/2 z-50 flex max-h-[80vh] w-[calc(100vw-2rem)] max-w-lg -translate-x-1/2 flex-col rounded-lg border bg-raised shadow-pop",
            className,
          )}
        >
          <header className="flex items-start justify-between gap-4 px-5 pt-4 pb-2">
            <div className="min-w-0">
              <Radix.Title className="text-base font-semibold break-words">{title}</Radix.Title>
              {description !== undefined && (
                <Radix.Description asChild>
                  <div className="mt-1 text-muted">{description}</div>
                </Radix.Description>
              )}
            </div>
            <Radix.Close asChild>
              <IconButton label="Close" className="-mr-2 shrink-0">
                <X className="size-4" />
              </IconButton>
            </Radix.Close>
          </header>
          {children !== undefined && <div className="min-h-0 overflow-y-auto px-5 py-2">{children}</div>}
          {actions !== undefined && (
            <footer className="flex flex-wrap justify-end gap-2 px-5 pt-3 pb-4">{actions}</footer>
          )}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

interface ConfirmProps {
  isOpen: boolean;
  onClose: () => void;
  /** A question: "Delete mail:welcome-7?" */
  title: string;
  /** What will happen, and to how much. */
  children: ReactNode;
  /** The button's words: "Delete", "Purge 1,204 jobs". */
  verb: string;
  isDangerous?: boolean;
  /** To be typed before the button can be pressed: for what cannot be undone and touches much. */
  typed?: string;
  isBusy?: boolean;
  error?: unknown;
  onConfirm: () => void;
}

/** Names what will be touched, and asks once. */
export function Confirm(props: ConfirmProps) {
  const {
    isOpen,
    onClose,
    title,
    children,
    verb,
    isDangerous = false,
    typed,
    isBusy = false,
    error,
    onConfirm,
  } = props;
  const [text, setText] = useState("");
  const isReady = typed === undefined || text === typed;
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
          <Button onClick={onClose}>Keep</Button>
          <Button look={isDangerous ? "danger" : "primary"} disabled={!isReady} isBusy={isBusy} onClick={onConfirm}>
            {verb}
          </Button>
        </>
      }
    >
      {typed !== undefined && (
        <TextField
          label={`Type ${typed} to confirm`}
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
          {error instanceof Error ? error.message : "That did not work"}
        </p>
      )}
    </Dialog>
  );
}
