import { Slot } from "radix-ui";
import type { ComponentProps } from "react";

import { classes } from "@/lib/classes";

const LOOKS = {
  primary: "bg-accent text-accent-text hover:opacity-90 forced-color-adjust-none",
  plain: "bg-surface border border-line-strong/50 text-text hover:bg-sunken",
  quiet: "text-muted hover:text-text hover:bg-sunken",
  danger: "bg-failed text-bg hover:opacity-90 forced-color-adjust-none",
} as const;

interface ButtonProps extends ComponentProps<"button"> {
  look?: keyof typeof LOOKS;
  /** The child element takes the looks: a link that is a button to the eye. */
  asChild?: boolean;
  /** What is under way: the button says so and cannot be pressed again. */
  isBusy?: boolean;
}

export function Button({ look = "plain", asChild = false, isBusy = false, className, disabled, ...rest }: ButtonProps) {
  const Component = asChild ? Slot.Root : "button";
  return (
    <Component
      {...(asChild ? {} : { type: "button" as const, disabled: disabled || isBusy, "aria-busy": isBusy || undefined })}
      className={classes(
        "inline-flex h-8 items-center justify-center gap-1.5 rounded-md px-3 text-[13px] font-medium whitespace-nowrap transition-colors disabled:opacity-50",
        LOOKS[look],
        className,
      )}
      {...rest}
    />
  );
}

interface IconButtonProps extends ComponentProps<"button"> {
  /** What it does: read aloud, and shown when pointed at. */
  label: string;
}

export function IconButton({ label, className, ...rest }: IconButtonProps) {
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      className={classes(
        "inline-flex size-8 items-center justify-center rounded-md text-muted transition-colors hover:bg-sunken hover:text-text disabled:opacity-50",
        className,
      )}
      {...rest}
    />
  );
}
