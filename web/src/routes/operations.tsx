/** The operations page: bulk operations of all users, and what became of them. */

import { useQuery } from "@tanstack/react-query";

import { operationsQuery, stopOperation } from "@/api/bulk-operations";
import { queryKeys } from "@/api/query-keys";
import { useHasRole } from "@/api/session";
import { EmptyState, QueryContent } from "@/components/loading-empty-error-states";
import { OperationList } from "@/components/operations/operation-list";
import { PageLayout } from "@/components/page-layout";
import { useMutationWithToast } from "@/lib/use-mutation-with-toast";
import { usePausableQuery } from "@/live/use-pausable-polling";

export function OperationsRoute() {
  const mayStop = useHasRole("operator");
  const operations = useQuery(usePausableQuery(operationsQuery));
  const stop = useMutationWithToast({
    run: stopOperation,
    successMessage: () => "Stopping the operation",
    invalidates: [queryKeys.operations],
  });
  return (
    <PageLayout title="Operations" lead="Changes of many jobs at once: cancel, redrive, change, delete">
      <QueryContent query={operations} lines={6}>
        {(all) =>
          all.length > 0 ? (
            <OperationList operations={all} onStop={mayStop ? (id) => stop.mutate(id) : undefined} />
          ) : (
            <EmptyState title="No operations yet">
              Select jobs on the jobs page or dead letters to cancel, redrive, change or delete them together.
            </EmptyState>
          )
        }
      </QueryContent>
    </PageLayout>
  );
}
