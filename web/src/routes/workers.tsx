/** The workers page. */

import { useQuery } from "@tanstack/react-query";
import { useRef, useState } from "react";

import { queryKeys } from "@/api/query-keys";
import { useHasRole } from "@/api/session";
import { drainWorker, workersQuery, type Worker } from "@/api/workers";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { CopyButton } from "@/components/copy-button";
import { EmptyState, QueryContent } from "@/components/loading-empty-error-states";
import { PageLayout } from "@/components/page-layout";
import { WorkerCard } from "@/components/workers/worker-card";
import { WorkerCpuUsage } from "@/components/workers/worker-cpu-usage";
import { formatPlural } from "@/lib/format-number";
import { useMutationWithToast } from "@/lib/use-mutation-with-toast";
import { usePausablePolling } from "@/live/use-pausable-polling";

/** No event reports CPU and memory, or that a worker is silent. */
const HEARTBEAT_MS = 3000;
const COMMAND = "rota worker tasks:rota";

export function WorkersRoute() {
  const workers = useQuery({ ...workersQuery, refetchInterval: usePausablePolling(HEARTBEAT_MS) });
  const mayDrain = useHasRole("operator");
  const [draining, setDraining] = useState<Worker | null>(null);
  const reports = useRef(new WorkerCpuUsage());
  const drain = useMutationWithToast({
    run: ({ id }: Worker) => drainWorker(id),
    successMessage: ({ name, id }: Worker) => `${name || id} is draining: it finishes its running jobs and stops`,
    invalidates: [queryKeys.workers, queryKeys.overview],
    onDone: () => setDraining(null),
    hidesErrors: true,
  });

  function card(worker: Worker) {
    return (
      <li key={worker.id}>
        <WorkerCard
          worker={worker}
          cpu={shareOf(worker)}
          onDrain={mayDrain && worker.actions.includes("drain") ? () => setDraining(worker) : undefined}
        />
      </li>
    );
  }

  function shareOf(worker: Worker) {
    return reports.current.share(worker.id, worker);
  }

  return (
    <PageLayout title="Workers" lead={workers.data && lead(workers.data)}>
      <QueryContent query={workers} lines={8}>
        {(all) => {
          const here = all.filter((worker) => worker.status === "ALIVE" && worker.state !== "stopped");
          const dead = all.filter((worker) => worker.status === "DEAD" && worker.state !== "stopped");
          const stopped = all.filter((worker) => worker.state === "stopped");
          return (
            <>
              {dead.length > 0 && (
                <section aria-label="Dead workers" className="flex flex-col gap-3">
                  <h2 className="text-base font-semibold">
                    {formatPlural(dead.length, "worker")} stopped sending heartbeats
                  </h2>
                  <ul className="flex flex-col gap-3">{dead.toSorted(byLastSeen).map(card)}</ul>
                </section>
              )}
              {here.length === 0 ? (
                <EmptyState title="No workers running">
                  <p>Jobs wait until a worker is started:</p>
                  <p className="mt-2 inline-flex items-center gap-2 rounded-md border bg-surface px-3 py-1.5">
                    <code>{COMMAND}</code>
                    <CopyButton text={COMMAND} />
                  </p>
                </EmptyState>
              ) : (
                <ul aria-label="Running workers" className="flex flex-col gap-3">
                  {here.toSorted(byName).map(card)}
                </ul>
              )}
              {stopped.length > 0 && (
                <details className="group">
                  <summary className="w-fit rounded-md px-1 py-1 text-muted hover:text-text">
                    {formatPlural(stopped.length, "worker")} stopped in the last 24 hours
                  </summary>
                  <ul aria-label="Stopped workers" className="mt-2 flex flex-col gap-3">
                    {stopped.toSorted(byLastSeen).map(card)}
                  </ul>
                </details>
              )}
            </>
          );
        }}
      </QueryContent>
      {draining !== null && (
        <ConfirmDialog
          isOpen
          onClose={() => {
            drain.reset();
            setDraining(null);
          }}
          title={`Drain ${draining.name || draining.id}?`}
          verb="Drain"
          isBusy={drain.isPending}
          error={drain.error}
          onConfirm={() => drain.mutate(draining)}
        >
          {draining.running.length === 0
            ? "It runs no job now. It claims"
            : `It finishes ${formatPlural(draining.running.length, "running job")}, claims`}{" "}
          no more jobs, and its process exits. This cannot be undone; a process manager may start it again.
        </ConfirmDialog>
      )}
    </PageLayout>
  );
}

/** Undefined without workers: the page shows that itself. */
function lead(workers: readonly Worker[]): string | undefined {
  const here = workers.filter((worker) => worker.status === "ALIVE" && worker.state !== "stopped");
  if (here.length === 0) return undefined;
  const sum = (of: (worker: Worker) => number) => here.reduce((total, worker) => total + of(worker), 0);
  return `${formatPlural(here.length, "worker")}, ${sum(({ busy }) => busy)} of ${formatPlural(
    sum(({ slots }) => slots),
    "slot",
  )} busy`;
}

function byName(one: Worker, other: Worker): number {
  return one.name.localeCompare(other.name) || one.id.localeCompare(other.id);
}

function byLastSeen(one: Worker, other: Worker): number {
  return Date.parse(other.last_seen) - Date.parse(one.last_seen);
}
