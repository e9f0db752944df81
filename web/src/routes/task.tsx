/** The page of one task: its jobs in all queues, or in one. */

import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { Pause, Play } from "lucide-react";
import { useState } from "react";

import { ApiError } from "@/api/http-client";
import { pauseTask, resumeTask } from "@/api/pause-actions";
import { taskDetailQuery, type LoadDetail } from "@/api/queue-and-task-detail";
import { queryKeys } from "@/api/query-keys";
import { useHasRole, useSession } from "@/api/session";
import { Badge } from "@/components/badges";
import { Button } from "@/components/buttons";
import { SelectField } from "@/components/form-fields";
import { EmptyState, ErrorState, LoadingState } from "@/components/loading-empty-error-states";
import { PageLayout } from "@/components/page-layout";
import { LoadDetailView } from "@/components/queue-and-task/load-detail-view";
import { PauseBanner } from "@/components/queue-and-task/pause-banner";
import { PauseDialog } from "@/components/queue-and-task/pause-dialog";
import { formatPlural } from "@/lib/format-number";
import { useMutationWithToast } from "@/lib/use-mutation-with-toast";
import { usePausableQuery } from "@/live/use-pausable-polling";
import { AttentionPanel } from "@/routes/attention-panel";
import { LoadCharts } from "@/routes/load-charts";

const route = getRouteApi("/authenticated/tasks/$name");
const INVALIDATED = [queryKeys.overview, queryKeys.allLoadDetails, queryKeys.tasks];

export function TaskRoute() {
  const { name } = route.useParams();
  const { queues } = useSession();
  const { queue = queues[0] } = route.useSearch();
  const detail = useQuery(usePausableQuery(taskDetailQuery(name, queue)));
  if (detail.data !== undefined) return <TaskPage key={name} name={name} queue={queue} detail={detail.data} />;
  return (
    <PageLayout title={name}>
      {detail.error instanceof ApiError && detail.error.status === 404 ? (
        <EmptyState
          title="Task not found"
          action={
            <Button asChild>
              <Link to="/jobs" search={{ task: name }}>
                Jobs of {name}
              </Link>
            </Button>
          }
        >
          No worker has announced a task of this name, and no job of it was counted in the last 30 days.
        </EmptyState>
      ) : detail.error ? (
        <ErrorState error={detail.error} onRetry={() => void detail.refetch()} />
      ) : (
        <LoadingState lines={8} />
      )}
    </PageLayout>
  );
}

function TaskPage({ name, queue, detail }: { name: string; queue: string | undefined; detail: LoadDetail }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const mayPause = useHasRole("operator");
  const { queues: allowed } = useSession();
  const [isAsking, setAsking] = useState(false);
  const where = queue === undefined ? "in all queues" : `in ${queue}`;
  const pause = useMutationWithToast({
    run: (note: string) => pauseTask(name, queue, note),
    successMessage: () => `${name} paused ${where}`,
    invalidates: INVALIDATED,
    onDone: () => setAsking(false),
    hidesErrors: true,
  });
  const resume = useMutationWithToast({
    run: () => resumeTask(name, queue),
    successMessage: () => `${name} resumed ${where}`,
    invalidates: INVALIDATED,
  });
  const pauses = detail.paused_tasks.filter(({ is_resuming }) => !is_resuming);
  const queues = detail.queues ?? [];
  const filter = { task: name, queue };

  function show(change: typeof search) {
    void navigate({ search: (before) => ({ ...before, ...change }), replace: true, resetScroll: false });
  }

  return (
    <PageLayout
      title={name}
      beside={
        <>
          <Badge>task</Badge>
          {pauses.length > 0 && <Badge className="bg-blocked text-bg">paused</Badge>}
        </>
      }
      lead={detail.task?.doc.split("\n")[0]}
      actions={
        <>
          {queues.length > 1 && (
            <SelectField
              label="Queue"
              isLabelHidden
              className="w-40"
              value={queue ?? ""}
              onChange={(selected) => show({ queue: selected || undefined })}
              options={[
                ...(allowed.length === 0 ? [{ value: "", label: "All queues" }] : []),
                ...queues.map((one) => ({ value: one, label: one })),
              ]}
            />
          )}
          <Button asChild>
            <Link to="/jobs" search={filter}>
              Jobs
            </Link>
          </Button>
          {mayPause &&
            (pauses.length > 0 ? (
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
      {pauses.map((one) => (
        <PauseBanner
          key={one.queue}
          what={`${name} in ${one.queue} was paused (${formatPlural(one.waiting, "job")} waiting)`}
          pause={one.paused}
        />
      ))}
      <LoadDetailView
        detail={detail}
        filter={filter}
        attention={<AttentionPanel findings={detail.findings} />}
        charts={<LoadCharts scope={filter} search={search} at={detail.at} onChange={show} />}
      />
      {isAsking && (
        <PauseDialog
          name={`${name} ${where}`}
          jobs="jobs of this task"
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
