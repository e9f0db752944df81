/** The queues page: depth, rates, pause, resume and purge. */

import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useCallback, useState } from "react";

import { overviewQuery } from "@/api/overview";
import { queryKeys } from "@/api/query-keys";
import { pauseQueue, resumeQueue } from "@/api/pause-actions";
import { purgeQueue } from "@/api/purge-queue";
import { useHasRole } from "@/api/session";
import { EmptyState, NoMatches, QueryContent } from "@/components/loading-empty-error-states";
import { PageLayout } from "@/components/page-layout";
import { PauseDialog } from "@/components/queue-and-task/pause-dialog";
import { PurgeQueueDialog } from "@/components/queues/purge-queue-dialog";
import { QueueList } from "@/components/queues/queue-list";
import { SearchField } from "@/components/search-field";
import { formatPlural } from "@/lib/format-number";
import { useMutationWithToast } from "@/lib/use-mutation-with-toast";
import { usePausableQuery } from "@/live/use-pausable-polling";

const route = getRouteApi("/authenticated/queues");
const COUNT_REFRESH_MS = 2000;

export function QueuesRoute() {
  const { text = "" } = route.useSearch();
  const navigate = route.useNavigate();
  const overview = useQuery(usePausableQuery(overviewQuery));
  const mayPause = useHasRole("operator");
  const mayPurge = useHasRole("admin");
  const [pausing, setPausing] = useState<string | null>(null);
  const [purging, setPurging] = useState<string | null>(null);
  const filter = useCallback(
    (wanted: string) => void navigate({ search: { text: wanted || undefined }, replace: true }),
    [navigate],
  );

  const pause = useMutationWithToast({
    run: ({ queue, note }: { queue: string; note: string }) => pauseQueue(queue, note),
    successMessage: ({ queue }) => `${queue} paused`,
    invalidates: [queryKeys.overview],
    onDone: () => setPausing(null),
    hidesErrors: true,
  });
  const resume = useMutationWithToast({
    run: resumeQueue,
    successMessage: (queue: string) => `${queue} resumed`,
    invalidates: [queryKeys.overview],
  });

  return (
    <PageLayout
      title="Queues"
      lead={overview.data && formatPlural(overview.data.queues.length, "queue")}
      actions={<SearchField label="Filter by name" value={text} onChange={filter} />}
    >
      <QueryContent query={overview} lines={8}>
        {({ queues, at }) => {
          if (queues.length === 0) {
            return (
              <EmptyState title="No queues yet">A queue is created when the first job is enqueued to it.</EmptyState>
            );
          }
          const shown = queues.filter(({ name }) => name.toLowerCase().includes(text.toLowerCase()));
          if (shown.length === 0) return <NoMatches what="queues" onClear={() => filter("")} />;
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
      </QueryContent>
      {pausing !== null && (
        <PauseDialog
          name={pausing}
          jobs="jobs of this queue"
          isBusy={pause.isPending}
          error={pause.error}
          onClose={() => {
            pause.reset();
            setPausing(null);
          }}
          onPause={(note) => pause.mutate({ queue: pausing, note })}
        />
      )}
      {purging !== null && <PurgeQueue queue={purging} onClose={() => setPurging(null)} />}
    </PageLayout>
  );
}

function PurgeQueue({ queue, onClose }: { queue: string; onClose: () => void }) {
  const counted = useQuery({
    queryKey: queryKeys.purge(queue),
    queryFn: () => purgeQueue(queue),
    staleTime: 0,
    gcTime: 0,
    // The queue changes while the dialog is open.
    refetchInterval: COUNT_REFRESH_MS,
  });
  const purge = useMutationWithToast({
    run: () => purgeQueue(queue, queue),
    successMessage: (_: undefined, { purged }) => `${formatPlural(purged, "job")} of ${queue} deleted`,
    invalidates: [queryKeys.overview, queryKeys.allJobs],
    onDone: onClose,
    hidesErrors: true,
  });
  return (
    <PurgeQueueDialog
      queue={queue}
      counted={counted}
      isBusy={purge.isPending}
      error={purge.error}
      onClose={onClose}
      onConfirm={() => purge.mutate(undefined)}
    />
  );
}
