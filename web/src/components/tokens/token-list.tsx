import type { ApiToken } from "@/api/api-tokens";
import { Badge } from "@/components/badges";
import { Button } from "@/components/buttons";
import { RelativeTime } from "@/components/relative-time-and-duration";

interface TokenListProps {
  tokens: readonly ApiToken[];
  onRevoke: (token: ApiToken) => void;
}

/** The tokens with their role, limits, expiry and last use. */
export function TokenList({ tokens, onRevoke }: TokenListProps) {
  return (
    <ul aria-label="Tokens" className="divide-y rounded-lg border bg-surface">
      {tokens.map((token) => (
        <li key={token.id} className="flex flex-wrap items-center gap-x-6 gap-y-2 px-4 py-3">
          <div className="min-w-0 flex-1 basis-60">
            <p className="flex flex-wrap items-center gap-2">
              <span className="font-medium break-all">{token.name || token.id}</span>
              <Badge>{token.role}</Badge>
              {token.is_expired && <Badge className="bg-failed-soft text-failed">expired</Badge>}
            </p>
            <p className="text-[13px] break-words text-muted">{limitsOf(token)}</p>
          </div>
          <dl className="grid grid-cols-3 gap-x-6 text-[13px]">
            <Property name="Created">
              <RelativeTime at={token.created_at} />
              {token.created_by !== null && <span className="block text-xs text-muted">by {token.created_by}</span>}
            </Property>
            <Property name="Last used">
              {token.last_used === null ? (
                <span className="text-muted">never</span>
              ) : (
                <RelativeTime at={token.last_used} />
              )}
            </Property>
            <Property name="Expires">
              {token.expires_at === null ? (
                <span className="text-muted">never</span>
              ) : (
                <RelativeTime at={token.expires_at} />
              )}
            </Property>
          </dl>
          <Button onClick={() => onRevoke(token)} aria-label={`Revoke ${token.name || token.id}`}>
            Revoke
          </Button>
        </li>
      ))}
    </ul>
  );
}

function Property({ name, children }: { name: string; children: React.ReactNode }) {
  return (
    <div className="min-w-20">
      <dt className="text-xs text-muted">{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function limitsOf({ queues, tasks }: ApiToken): string {
  const parts = [
    queues.length > 0 && `queues ${queues.join(", ")}`,
    tasks.length > 0 && `tasks ${tasks.join(", ")}`,
  ].filter(Boolean);
  return parts.length > 0 ? `Only ${parts.join("; ")}` : "All queues and tasks";
}
