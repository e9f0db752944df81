/** A modal dialog with title, content and buttons. */

import { X } from "lucide-react";
import { Dialog as Radix } from "radix-ui";
import { type ReactNode } from "react";

import { IconButton } from "@/components/buttons";
import { classNames } from "@/lib/class-names";

interface DialogProps {
  isOpen: boolean;
  onClose: () => void;
  title: string;
  /** Announced by screen readers when the dialog opens. */
  description?: ReactNode;
  children?: ReactNode;
  /** The buttons in the footer. */
  actions?: ReactNode;
  className?: string;
}

/** Focuses the first input. By default the close button, the first one, would get the focus. */
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
          className={classNames(
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
