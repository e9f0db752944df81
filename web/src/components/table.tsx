/** A plain table for short lists. Long ones are virtualised: see the jobs table. */

import type { ComponentProps } from "react";

import { classNames } from "@/lib/class-names";

/** Wide tables scroll within their panel, never the page. */
export function Table({ label, className, children, ...rest }: ComponentProps<"table"> & { label: string }) {
  return (
    <div className="relative overflow-x-auto" tabIndex={0} role="region" aria-label={label}>
      <table
        className={classNames(
          "w-full border-collapse text-left text-[13px] [&_tbody_tr:last-child_td]:border-b-0",
          className,
        )}
        {...rest}
      >
        {children}
      </table>
    </div>
  );
}

export function Th({ className, ...rest }: ComponentProps<"th">) {
  return (
    <th
      scope="col"
      className={classNames(
        "border-b px-3 py-2 first:pl-4 last:pr-4 text-xs font-medium whitespace-nowrap text-muted",
        className,
      )}
      {...rest}
    />
  );
}

export function Td({ className, ...rest }: ComponentProps<"td">) {
  return (
    <td
      className={classNames("border-b border-line/60 px-3 py-2 first:pl-4 last:pr-4 align-middle", className)}
      {...rest}
    />
  );
}
