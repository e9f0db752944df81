import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useCallback, useState } from "react";

import { keys } from "@/api/keys";
import { overviewQuery } from "@/api/overview";
import { pauseQueue, purgeQueue, resumeQueue } from "@/api/queues";
import { useMay } from "@/api/session";
import { Confirm } from "@/components/dialog";
import { FilterField } from "@/components/filter-field";
import { Empty, FilteredEmpty, Loaded } from "@/components/looks";
import { Page } from "@/components/page";
import { PurgeDialog } from "@/components/queues/purge-dialog";
import { QueueList } from "@/components/queues/queue-list";
import { useAct } from "@/lib/act";
import { plural } from "@/lib/numbers";
import { useWhileLive } from "@/live/polling";

const route = getRouteApi("/inside/queues");

export function QueuesRoute() {
  const { text = "" } = route.useSearch();
  const navigate = route.useNavigate();
  const overview = useQuery(useWhileLive(overviewQuery));
  const mayPause = useMay("operator");
  const mayPurge = useMay("admin");
  const [pausing, setPausing] = useState<string | null>(null);
  const [purging, setPurging] = useState<string | null>(null);
  const filter = useCallback(
    (wanted: string) => void navigate({ search: { text: wanted || undefined }, replace: true }),
    [navigate],
  );

  const pause = useAct({
    act: pauseQueue,
    said: (queue: string) => `${queue} is paused`,
    changes: [keys.overview],
    onDone: () => setPausing(null),
    isQuiet: true,
  });
  const resume = useAct({
    act: resumeQueue,
    said: (queue: string) => `${queue} goes on`,
    changes: [keys.overview],
  });

  return (
    <Page
      title="Queues"
      lead={overview.data && plural(overview.data.queues.length, "queue")}
      actions={<FilterField label="Filter by name" value={text} onChange={filter} />}
    >
      <Loaded query={overview} lines={8}>
        {({ queues, at }) => {
          if (queues.length === 0) {
            return <Empty title="No queues yet">A queue exists from the first job that is enqueued into it.</Empty>;
          }
          const shown = queues.filter(({ name }) => name.toLowerCase().includes(text.toLowerCase()));
          if (shown.length === 0) return <FilteredEmpty what="queues" onClear={() => filter("")} />;
          return (
            <QueueList
              queues={shown}
              at={at}
              onPause={mayPause ? setPausing : undefined}
              onResume={mayPause ? (queue) => resume.mutate(queue) : undefined}
              onPurge={mayPurge ? setPurging : undefined}
            />
          );
        }}
      </Loaded>
      {pausing !== null && (
        <Confirm
          isOpen
          onClose={() => {
            pause.reset();
            setPausing(null);
          }}
          title={`Pause ${pausing}?`}
          verb="Pause"
          isBusy={pause.isPending}
          error={pause.error}
          onConfirm={() => pause.mutate(pausing)}
        >
          No job of it starts, on any worker, until it is resumed. Jobs that run now go on, and new ones can be
          enqueued.
        </Confirm>
      )}
      {purging !== null && <Purging queue={purging} onClose={() => setPurging(null)} />}
    </Page>
  );
}

function Purging({ queue, onClose }: { queue: string; onClose: () => void }) {
  const counted = useQuery({ queryKey: ["purge", queue], queryFn: () => purgeQueue(queue), staleTime: 0, gcTime: 0 });
  const purge = useAct({
    act: () => purgeQueue(queue, queue),
    said: (_: undefined, { purged }) => `${plural(purged, "job")} of ${queue} deleted`,
    changes: [keys.overview, ["jobs"]],
    onDone: onClose,
    isQuiet: true,
  });
  return (
    <PurgeDialog
      queue={queue}
      counted={counted}
      isBusy={purge.isPending}
      error={purge.error}
      onClose={onClose}
      onConfirm={() => purge.mutate(undefined)}
    />
  );
}
