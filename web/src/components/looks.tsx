/** What a list or page looks like when there is nothing to show: yet, at all, for this filter, for this reader. */

import type { UseQueryResult } from "@tanstack/react-query";
import { CircleAlert, CloudOff, Inbox, LockKeyhole, SearchX, type LucideIcon } from "lucide-react";
import type { ReactNode } from "react";

import { ApiError } from "@/api/client";
import { Button } from "@/components/button";
import { Coded } from "@/components/coded";
import { fullSentence } from "@/lib/explanation";

interface LookProps {
  icon?: LucideIcon;
  title: string;
  children?: ReactNode;
  action?: ReactNode;
}

function Look({ icon: Icon = Inbox, title, children, action }: LookProps) {
  return (
    <div className="flex flex-col items-center gap-2 px-6 py-12 text-center">
      <Icon aria-hidden className="size-7 text-muted" strokeWidth={1.5} />
      <p className="font-medium">{title}</p>
      {children !== undefined && <div className="w-full max-w-prose text-muted">{children}</div>}
      {action !== undefined && <div className="mt-2 flex gap-2">{action}</div>}
    </div>
  );
}

/** There is none yet. */
export function Empty(props: LookProps) {
  return <Look {...props} />;
}

/** There are some, but none that match. */
export function FilteredEmpty({ what, onClear }: { what: string; onClear: () => void }) {
  return <Look icon={SearchX} title={`No ${what} match`} action={<Button onClick={onClear}>Clear filters</Button>} />;
}

/** It could not be read: why, and what to do. */
export function Failure({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const again = onRetry && <Button onClick={onRetry}>Try again</Button>;
  if (error instanceof ApiError && error.status === 403) {
    return (
      <Look icon={LockKeyhole} title="You may not see this">
        <Coded text={fullSentence(error.message)} />
      </Look>
    );
  }
  if (error instanceof ApiError && (error.status === 0 || error.status === 503)) {
    return (
      <Look
        icon={CloudOff}
        title={error.status === 0 ? "The server does not answer" : "The store does not answer"}
        action={again}
      >
        <Coded text={fullSentence(error.message)} />
      </Look>
    );
  }
  return (
    <Look icon={CircleAlert} title="This could not be shown" action={again}>
      <Coded text={fullSentence(error instanceof Error ? error.message : String(error))} />
    </Look>
  );
}

/** Bars where lines will be. */
export function Loading({ lines = 5 }: { lines?: number }) {
  return (
    <div role="status" aria-label="Loading" className="flex flex-col gap-3 p-4">
      {Array.from({ length: lines }, (_, line) => (
        <div
          key={line}
          className="h-4 animate-[breathe_1.6s_ease-in-out_infinite] rounded bg-line"
          style={{ width: `${90 - ((line * 17) % 45)}%` }}
        />
      ))}
    </div>
  );
}

/** The data of a query, or how it looks without. What was read before stays while it is read again. */
export function Loaded<T>({
  query,
  lines,
  children,
}: {
  query: UseQueryResult<T>;
  lines?: number;
  children: (data: T) => ReactNode;
}) {
  if (query.data !== undefined) return <>{children(query.data)}</>;
  if (query.error) return <Failure error={query.error} onRetry={() => void query.refetch()} />;
  return <Loading lines={lines} />;
}
