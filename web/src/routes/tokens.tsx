/** The tokens page: create, list, revoke. */

import { useQuery } from "@tanstack/react-query";
import { Plus } from "lucide-react";
import { useState } from "react";

import { createToken, revokeToken, tokensQuery, type ApiToken, type NewToken } from "@/api/api-tokens";
import { ApiError } from "@/api/http-client";
import { queryKeys } from "@/api/query-keys";
import { useHasRole } from "@/api/session";
import { Button } from "@/components/buttons";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { EmptyState, ErrorState, QueryContent } from "@/components/loading-empty-error-states";
import { PageLayout } from "@/components/page-layout";
import { NewTokenDialog } from "@/components/tokens/new-token-dialog";
import { TokenList } from "@/components/tokens/token-list";
import { useMutationWithToast } from "@/lib/use-mutation-with-toast";
import { usePausablePolling } from "@/live/use-pausable-polling";

/** No event reports that a token was used. */
const POLL_MS = 10_000;

export function TokensRoute() {
  const isAdmin = useHasRole("admin");
  if (isAdmin) return <TokensPage />;
  return (
    <PageLayout title="Tokens">
      <ErrorState error={new ApiError("Requires the admin role.", 403, "forbidden")} />
    </PageLayout>
  );
}

function TokensPage() {
  const tokens = useQuery({ ...tokensQuery, refetchInterval: usePausablePolling(POLL_MS) });
  const [isCreating, setCreating] = useState(false);
  const [revoking, setRevoking] = useState<ApiToken | null>(null);
  const create = useMutationWithToast({
    run: (token: NewToken) => createToken(token),
    successMessage: ({ name }) => `Token ${name ?? ""} created`,
    invalidates: [queryKeys.tokens],
    hidesErrors: true,
  });
  const revoke = useMutationWithToast({
    run: ({ id }: ApiToken) => revokeToken(id),
    successMessage: ({ name, id }) => `${name || id} revoked`,
    invalidates: [queryKeys.tokens],
    onDone: () => setRevoking(null),
    hidesErrors: true,
  });
  return (
    <PageLayout
      title="Tokens"
      lead="Each person and program has a token of its own, with a role and an expiry."
      actions={
        <Button variant="primary" onClick={() => setCreating(true)}>
          <Plus aria-hidden className="size-3.5" /> New token
        </Button>
      }
    >
      <QueryContent query={tokens} lines={6}>
        {(all) =>
          all.length > 0 ? (
            <TokenList tokens={all} onRevoke={setRevoking} />
          ) : (
            <EmptyState title="No tokens yet">
              A colleague who only reads needs a token with the role viewer.
            </EmptyState>
          )
        }
      </QueryContent>
      {isCreating && (
        <NewTokenDialog
          isBusy={create.isPending}
          error={create.error}
          secret={create.data?.secret ?? null}
          onCreate={(token) => create.mutate(token)}
          onClose={() => {
            create.reset();
            setCreating(false);
          }}
        />
      )}
      {revoking !== null && (
        <ConfirmDialog
          isOpen
          isDangerous
          onClose={() => {
            revoke.reset();
            setRevoking(null);
          }}
          title={`Revoke ${revoking.name || revoking.id}?`}
          verb="Revoke"
          isBusy={revoke.isPending}
          error={revoke.error}
          onConfirm={() => revoke.mutate(revoking)}
        >
          Requests with it are refused at once, and its sessions end. This cannot be undone.
        </ConfirmDialog>
      )}
    </PageLayout>
  );
}
