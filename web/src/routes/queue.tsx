/** The page of one queue. */

import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { Pause, Play } from "lucide-react";
import { useState } from "react";

import { ApiError } from "@/api/http-client";
import { pauseQueue, resumeQueue } from "@/api/pause-actions";
import { queueDetailQuery, type LoadDetail } from "@/api/queue-and-task-detail";
import { queryKeys } from "@/api/query-keys";
import { useHasRole } from "@/api/session";
import { Badge } from "@/components/badges";
import { Button } from "@/components/buttons";
import { EmptyState, ErrorState, LoadingState } from "@/components/loading-empty-error-states";
import { PageLayout } from "@/components/page-layout";
import { LoadDetailView } from "@/components/queue-and-task/load-detail-view";
import { PauseBanner } from "@/components/queue-and-task/pause-banner";
import { PauseDialog } from "@/components/queue-and-task/pause-dialog";
import { useMutationWithToast } from "@/lib/use-mutation-with-toast";
import { usePausableQuery } from "@/live/use-pausable-polling";
import { AttentionPanel } from "@/routes/attention-panel";
import { LoadCharts } from "@/routes/load-charts";

const route = getRouteApi("/authenticated/queues/$name");
const INVALIDATED = [queryKeys.overview, queryKeys.allLoadDetails];

export function QueueRoute() {
  const { name } = route.useParams();
  const detail = useQuery(usePausableQuery(queueDetailQuery(name)));
  if (detail.data !== undefined) return <QueuePage key={name} name={name} detail={detail.data} />;
  return (
    <PageLayout title={name}>
      {detail.error instanceof ApiError && detail.error.status === 404 ? (
        <EmptyState
          title="Queue not found"
          action={
            <Button asChild>
              <Link to="/queues">All queues</Link>
            </Button>
          }
        >
          A queue exists once a job has been enqueued to it.
        </EmptyState>
      ) : detail.error ? (
        <ErrorState error={detail.error} onRetry={() => void detail.refetch()} />
      ) : (
        <LoadingState lines={8} />
      )}
    </PageLayout>
  );
}

function QueuePage({ name, detail }: { name: string; detail: LoadDetail }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const mayPause = useHasRole("operator");
  const [isAsking, setAsking] = useState(false);
  const pause = useMutationWithToast({
    run: (note: string) => pauseQueue(name, note),
    successMessage: () => `${name} paused`,
    invalidates: INVALIDATED,
    onDone: () => setAsking(false),
    hidesErrors: true,
  });
  const resume = useMutationWithToast({
    run: () => resumeQueue(name),
    successMessage: () => `${name} resumed`,
    invalidates: INVALIDATED,
  });
  const isPaused = detail.queue?.is_paused === true;
  return (
    <PageLayout
      title={name}
      beside={
        <>
          <Badge>queue</Badge>
          {isPaused && <Badge className="bg-blocked text-bg">paused</Badge>}
        </>
      }
      actions={
        <>
          <Button asChild>
            <Link to="/jobs" search={{ queue: name }}>
              Jobs
            </Link>
          </Button>
          {mayPause &&
            (isPaused ? (
              <Button variant="primary" isBusy={resume.isPending} onClick={() => resume.mutate(undefined)}>
                <Play aria-hidden className="size-3.5" /> Resume
              </Button>
            ) : (
              <Button onClick={() => setAsking(true)}>
                <Pause aria-hidden className="size-3.5" /> Pause
              </Button>
            ))}
        </>
      }
    >
      {detail.queue?.paused && <PauseBanner what={`Queue ${name} was paused`} pause={detail.queue.paused} />}
      {detail.paused_tasks.map((one) => (
        <PauseBanner key={one.task} what={`Task ${one.task} was paused`} pause={one.paused} />
      ))}
      <LoadDetailView
        detail={detail}
        filter={{ queue: name }}
        attention={<AttentionPanel findings={detail.findings} />}
        charts={
          <LoadCharts
            scope={{ queue: name }}
            search={search}
            at={detail.at}
            onChange={(change) =>
              void navigate({ search: (before) => ({ ...before, ...change }), replace: true, resetScroll: false })
            }
          />
        }
      />
      {isAsking && (
        <PauseDialog
          name={name}
          jobs="jobs of this queue"
          isBusy={pause.isPending}
          error={pause.error}
          onClose={() => {
            pause.reset();
            setAsking(false);
          }}
          onPause={(note) => pause.mutate(note)}
        />
      )}
    </PageLayout>
  );
}
