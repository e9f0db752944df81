import { useQuery } from "@tanstack/react-query";
import { useRef, useState } from "react";

import { keys } from "@/api/keys";
import { useMay } from "@/api/session";
import { drainWorker, workersQuery, type Worker } from "@/api/workers";
import { CopyButton } from "@/components/copy";
import { Confirm } from "@/components/dialog";
import { Empty, Loaded } from "@/components/looks";
import { Page } from "@/components/page";
import { Reports } from "@/components/workers/load";
import { WorkerCard } from "@/components/workers/worker-card";
import { useAct } from "@/lib/act";
import { plural } from "@/lib/numbers";
import { usePolling } from "@/live/polling";

/** What a worker says of its CPU and memory, and that one is silent: no event tells of it. */
const HEARTBEAT_MS = 3000;
const COMMAND = "rota worker tasks:rota";

export function WorkersRoute() {
  const workers = useQuery({ ...workersQuery, refetchInterval: usePolling(HEARTBEAT_MS) });
  const mayDrain = useMay("operator");
  const [draining, setDraining] = useState<Worker | null>(null);
  const reports = useRef(new Reports());
  const drain = useAct({
    act: ({ id }: Worker) => drainWorker(id),
    said: ({ name, id }: Worker) => `${name || id} drains: it finishes what it runs, and leaves`,
    changes: [keys.workers, keys.overview],
    onDone: () => setDraining(null),
    isQuiet: true,
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
    <Page title="Workers" lead={workers.data && lead(workers.data)}>
      <Loaded query={workers} lines={8}>
        {(all) => {
          const here = all.filter((worker) => worker.status === "ALIVE" && worker.state !== "stopped");
          const gone = all.filter((worker) => !here.includes(worker));
          return (
            <>
              {here.length === 0 ? (
                <Empty title="No worker is running">
                  <p>Jobs wait until one is started:</p>
                  <p className="mt-2 inline-flex items-center gap-2 rounded-md border bg-surface px-3 py-1.5">
                    <code>{COMMAND}</code>
                    <CopyButton text={COMMAND} />
                  </p>
                </Empty>
              ) : (
                <ul aria-label="Workers that run" className="flex flex-col gap-3">
                  {here.toSorted(byName).map(card)}
                </ul>
              )}
              {gone.length > 0 && (
                <details className="group">
                  <summary className="w-fit rounded-md px-1 py-1 text-muted hover:text-text">
                    {plural(gone.length, "worker")} of the last day, gone or dead
                  </summary>
                  <ul aria-label="Workers that are gone" className="mt-2 flex flex-col gap-3">
                    {gone.toSorted(byLastSeen).map(card)}
                  </ul>
                </details>
              )}
            </>
          );
        }}
      </Loaded>
      {draining !== null && (
        <Confirm
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
          It finishes {draining.running.length === 0 ? "what it runs" : plural(draining.running.length, "running job")},
          takes nothing more, and its process ends. This cannot be taken back: whoever watches over it may start it
          again.
        </Confirm>
      )}
    </Page>
  );
}

/** Nothing where none is there: the page says so. */
function lead(workers: readonly Worker[]): string | undefined {
  const here = workers.filter((worker) => worker.status === "ALIVE" && worker.state !== "stopped");
  if (here.length === 0) return undefined;
  const sum = (of: (worker: Worker) => number) => here.reduce((total, worker) => total + of(worker), 0);
  return `${plural(here.length, "worker")}, ${sum(({ busy }) => busy)} of ${plural(
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
