/** What a list or page shows without data: loading, empty, no matches, no access, error. */

import type { UseQueryResult } from "@tanstack/react-query";
import { CircleAlert, CloudOff, Inbox, LockKeyhole, SearchX, type LucideIcon } from "lucide-react";
import type { ReactNode } from "react";

import { ApiError } from "@/api/http-client";
import { Button } from "@/components/buttons";
import { TextWithInlineCode } from "@/components/text-with-inline-code";
import { toFullSentence } from "@/lib/format-server-message";

interface PlaceholderProps {
  icon?: LucideIcon;
  title: string;
  children?: ReactNode;
  action?: ReactNode;
}

function Placeholder({ icon: Icon = Inbox, title, children, action }: PlaceholderProps) {
  return (
    <div className="flex flex-col items-center gap-2 px-6 py-12 text-center">
      <Icon aria-hidden className="size-7 text-muted" strokeWidth={1.5} />
      <p className="font-medium">{title}</p>
      {children !== undefined && <div className="w-full max-w-prose text-muted">{children}</div>}
      {action !== undefined && <div className="mt-2 flex gap-2">{action}</div>}
    </div>
  );
}

/** Nothing exists yet. */
export function EmptyState(props: PlaceholderProps) {
  return <Placeholder {...props} />;
}

/** Nothing matches the filter. */
export function NoMatches({ what, onClear }: { what: string; onClear: () => void }) {
  return (
    <Placeholder icon={SearchX} title={`No ${what} match`} action={<Button onClick={onClear}>Clear filters</Button>} />
  );
}

/** Loading failed: the reason, and what to do. */
export function ErrorState({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const again = onRetry && <Button onClick={onRetry}>Try again</Button>;
  if (error instanceof ApiError && error.status === 403) {
    return (
      <Placeholder icon={LockKeyhole} title="You do not have access">
        <TextWithInlineCode text={toFullSentence(error.message)} />
      </Placeholder>
    );
  }
  if (error instanceof ApiError && (error.status === 0 || error.status === 503)) {
    return (
      <Placeholder
        icon={CloudOff}
        title={error.status === 0 ? "The server is not responding" : "The store is not responding"}
        action={again}
      >
        <TextWithInlineCode text={toFullSentence(error.message)} />
      </Placeholder>
    );
  }
  return (
    <Placeholder icon={CircleAlert} title="This could not be loaded" action={again}>
      <TextWithInlineCode text={toFullSentence(error instanceof Error ? error.message : String(error))} />
    </Placeholder>
  );
}

/** Placeholder bars while loading. */
export function LoadingState({ lines = 5 }: { lines?: number }) {
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

/** Renders the data of a query, or its loading or error state. Previous data stays while it is refetched. */
export function QueryContent<T>({
  query,
  lines,
  children,
}: {
  query: UseQueryResult<T>;
  lines?: number;
  children: (data: T) => ReactNode;
}) {
  if (query.data !== undefined) return <>{children(query.data)}</>;
  if (query.error) return <ErrorState error={query.error} onRetry={() => void query.refetch()} />;
  return <LoadingState lines={lines} />;
}
