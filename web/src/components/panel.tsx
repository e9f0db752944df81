/** A section with a frame and a title. */

import type { ComponentProps, ReactNode } from "react";

import { classNames } from "@/lib/class-names";

interface PanelProps extends Omit<ComponentProps<"section">, "title"> {
  title?: ReactNode;
  /** Buttons and links at the right of the title. */
  actions?: ReactNode;
  /** The content reaches the edges: tables. */
  isFlush?: boolean;
}

export function Panel({ title, actions, isFlush = false, className, children, ...rest }: PanelProps) {
  return (
    <section className={classNames("min-w-0 rounded-lg border bg-surface", className)} {...rest}>
      {title !== undefined && (
        <header className="flex min-h-11 flex-wrap items-center justify-between gap-2 border-b px-4 py-1.5">
          <h2 className="text-[13px] font-semibold">{title}</h2>
          {actions !== undefined && <div className="flex items-center gap-2">{actions}</div>}
        </header>
      )}
      <div className={isFlush ? "" : "p-4"}>{children}</div>
    </section>
  );
}
