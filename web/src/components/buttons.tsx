/** Buttons with a text, and buttons with an icon only. */

import { Slot } from "radix-ui";
import type { ComponentProps } from "react";

import { classNames } from "@/lib/class-names";

const VARIANTS = {
  primary: "bg-accent text-accent-text hover:opacity-90 forced-color-adjust-none",
  plain: "bg-surface border border-line-strong/50 text-text hover:bg-sunken",
  quiet: "text-muted hover:text-text hover:bg-sunken",
  danger: "bg-failed text-bg hover:opacity-90 forced-color-adjust-none",
} as const;

interface ButtonProps extends ComponentProps<"button"> {
  variant?: keyof typeof VARIANTS;
  /** The child element takes the style: a link that looks like a button. */
  asChild?: boolean;
  /** The action is running: the button shows it and is disabled. */
  isBusy?: boolean;
}

export function Button({
  variant = "plain",
  asChild = false,
  isBusy = false,
  className,
  disabled,
  ...rest
}: ButtonProps) {
  const Component = asChild ? Slot.Root : "button";
  return (
    <Component
      {...(asChild ? {} : { type: "button" as const, disabled: disabled || isBusy, "aria-busy": isBusy || undefined })}
      className={classNames(
        "inline-flex h-8 items-center justify-center gap-1.5 rounded-md px-3 text-[13px] font-medium whitespace-nowrap transition-colors disabled:opacity-50",
        VARIANTS[variant],
        className,
      )}
      {...rest}
    />
  );
}

interface IconButtonProps extends ComponentProps<"button"> {
  /** The accessible name and the tooltip. */
  label: string;
}

export function IconButton({ label, className, ...rest }: IconButtonProps) {
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      className={classNames(
        "inline-flex size-8 items-center justify-center rounded-md text-muted transition-colors hover:bg-sunken hover:text-text disabled:opacity-50",
        className,
      )}
      {...rest}
    />
  );
}
