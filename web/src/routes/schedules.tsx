/** The schedules page: list, editor and forecast. */

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { useCallback, useState } from "react";

import { queryKeys } from "@/api/query-keys";
import {
  forecastQuery,
  changeSchedule,
  pauseSchedule,
  previewQuery,
  putSchedule,
  removeSchedule,
  resumeSchedule,
  runSchedule,
  scheduleRunsQuery,
  schedulesQuery,
  type Schedule,
} from "@/api/schedules";
import { useHasRole } from "@/api/session";
import { tasksQuery } from "@/api/tasks";
import { Button } from "@/components/buttons";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { JobLink } from "@/components/job-links";
import { EmptyState, NoMatches, QueryContent } from "@/components/loading-empty-error-states";
import { PageLayout } from "@/components/page-layout";
import { Panel } from "@/components/panel";
import { ForecastHeatmap, forecastSummary } from "@/components/schedules/forecast-heatmap";
import type { RunTimeZone } from "@/components/schedules/format-run-time";
import { RecentRunsList } from "@/components/schedules/recent-runs-list";
import { ScheduleEditor } from "@/components/schedules/schedule-editor";
import { ScheduleList } from "@/components/schedules/schedule-list";
import { SearchField } from "@/components/search-field";
import { SegmentedControl } from "@/components/segmented-control";
import { checkScheduleRule } from "@/lib/check-schedule-rule";
import { formatPlural } from "@/lib/format-number";
import { toScheduleDraft, toRule, type ScheduleDraft, type Rule } from "@/lib/schedule-draft";
import { useTimeZone } from "@/lib/time-zone-setting";
import { useDebouncedValue } from "@/lib/use-debounced-value";
import { useInView } from "@/lib/use-in-view";
import { useMutationWithToast } from "@/lib/use-mutation-with-toast";
import { usePausablePolling } from "@/live/use-pausable-polling";
import type { SchedulesSearch } from "@/routes/schedules.search-params";

const route = getRouteApi("/authenticated/schedules");
/** The next run changes with time; an event reports that it happened. */
const POLL_MS = 10_000;
/** A pause in typing. */
const DEBOUNCE_MS = 400;
const INVALIDATED = [queryKeys.schedules, queryKeys.overview];

export function SchedulesRoute() {
  const { text = "", zone = "own" } = route.useSearch();
  const navigate = route.useNavigate();
  const mayRun = useHasRole("operator");
  const mayRemove = useHasRole("admin");
  const schedules = useQuery({ ...schedulesQuery, refetchInterval: usePausablePolling(POLL_MS) });
  const [removing, setRemoving] = useState<Schedule | null>(null);
  const [editing, setEditing] = useState<Schedule | "new" | null>(null);

  const filter = useCallback(
    (change: SchedulesSearch) =>
      void navigate({ search: (before) => ({ ...before, ...change }), replace: true, resetScroll: false }),
    [navigate],
  );
  const filterText = useCallback((wanted: string) => filter({ text: wanted || undefined }), [filter]);

  const pause = useMutationWithToast({
    run: ({ id }: Schedule) => pauseSchedule(id),
    successMessage: ({ name }) => `${name} paused`,
    invalidates: INVALIDATED,
  });
  const resume = useMutationWithToast({
    run: ({ id }: Schedule) => resumeSchedule(id),
    successMessage: ({ name }) => `${name} resumed`,
    invalidates: INVALIDATED,
  });
  const run = useMutationWithToast({
    run: ({ id }: Schedule) => runSchedule(id),
    successMessage: (_, { jobId }) => (
      <>
        Enqueued <JobLink id={jobId} />
      </>
    ),
    invalidates: INVALIDATED,
  });
  const remove = useMutationWithToast({
    run: ({ id }: Schedule) => removeSchedule(id),
    successMessage: (_, { message }) => message,
    invalidates: INVALIDATED,
    onDone: () => setRemoving(null),
    hidesErrors: true,
  });

  return (
    <PageLayout
      title="Schedules"
      lead={schedules.data && formatPlural(schedules.data.length, "schedule")}
      actions={
        <>
          <SearchField label="Filter by name or task" value={text} onChange={filterText} />
          <SegmentedControl
            label="Times in"
            value={zone}
            onChange={(selected) => filter({ zone: selected === "own" ? undefined : selected })}
            options={[
              { value: "own", label: "Schedule’s zone" },
              { value: "local", label: "Local" },
              { value: "utc", label: "UTC" },
            ]}
          />
          {mayRun && (
            <Button variant="primary" onClick={() => setEditing("new")}>
              <Plus aria-hidden className="size-3.5" /> New schedule
            </Button>
          )}
        </>
      }
    >
      {/* If the schedules cannot be loaded either, one error is enough. */}
      {schedules.data !== undefined && <ForecastPanel zone={zone} />}
      <QueryContent query={schedules} lines={8}>
        {(all) => {
          if (all.length === 0) {
            return (
              <EmptyState title="No schedules yet">
                Declare one beside its task with <code>@rota.cron</code> or <code>@rota.every</code>, or create one
                here.
              </EmptyState>
            );
          }
          const wanted = text.toLowerCase();
          const shown = all.filter(({ id, type }) => `${id} ${type}`.toLowerCase().includes(wanted));
          if (shown.length === 0) return <NoMatches what="schedules" onClear={() => filterText("")} />;
          return (
            <ScheduleList
              schedules={shown}
              zone={zone}
              runsOf={(schedule) => <ScheduleRuns schedule={schedule} zone={zone} />}
              onPause={mayRun ? (schedule) => pause.mutate(schedule) : undefined}
              onResume={mayRun ? (schedule) => resume.mutate(schedule) : undefined}
              onRun={mayRun ? (schedule) => run.mutate(schedule) : undefined}
              onEdit={mayRun ? setEditing : undefined}
              onRemove={mayRemove ? setRemoving : undefined}
            />
          );
        }}
      </QueryContent>
      {removing !== null && (
        <ConfirmDialog
          isOpen
          onClose={() => {
            remove.reset();
            setRemoving(null);
          }}
          title={`Remove ${removing.name}?`}
          verb="Remove"
          isDangerous
          isBusy={remove.isPending}
          error={remove.error}
          onConfirm={() => remove.mutate(removing)}
        >
          The schedule enqueues no more jobs. Existing jobs are kept.
          {removing.is_declared && !removing.is_orphaned && " A worker that declares it recreates it at start."}
        </ConfirmDialog>
      )}
      {editing !== null && (
        <EditSchedule schedule={editing === "new" ? null : editing} onClose={() => setEditing(null)} />
      )}
    </PageLayout>
  );
}

function ForecastPanel({ zone }: { zone: RunTimeZone }) {
  const selected = useTimeZone();
  const forecast = useQuery({ ...forecastQuery, refetchInterval: usePausablePolling(POLL_MS) });
  return (
    // On a phone the heatmap is longer than the screen: the schedules come first.
    <Panel
      title="Upcoming"
      className="max-lg:order-last"
      actions={
        forecast.data && <span className="tabular-nums text-xs text-muted">{forecastSummary(forecast.data)}</span>
      }
    >
      <QueryContent query={forecast} lines={8}>
        {(data) => <ForecastHeatmap forecast={data} zone={zone === "own" ? selected : zone} />}
      </QueryContent>
    </Panel>
  );
}

/** Fetched only while visible: there may be hundreds of schedules. */
function ScheduleRuns({ schedule, zone }: { schedule: Schedule; zone: RunTimeZone }) {
  const [ref, isSeen] = useInView<HTMLDivElement>();
  const runs = useQuery({
    ...scheduleRunsQuery(schedule),
    enabled: isSeen,
    refetchInterval: usePausablePolling(POLL_MS),
  });
  return (
    <div ref={ref}>
      <RecentRunsList runs={runs.data} error={runs.error} zone={zone} />
    </div>
  );
}

/** The preview of the rule, or its error, once it is complete and typing has paused. */
function usePreview(draft: ScheduleDraft) {
  const typed = JSON.stringify(toRule(draft));
  const debounced = useDebouncedValue(typed, DEBOUNCE_MS);
  const isTyping = debounced !== typed;
  const gap = checkScheduleRule(draft);
  const query = useQuery({
    ...previewQuery(JSON.parse(debounced) as Rule),
    enabled: gap === null && !isTyping,
    placeholderData: keepPreviousData,
  });
  const wrong = gap ?? (query.error && { field: draft.kind, message: query.error.message });
  const refusal = isTyping ? null : wrong;
  // The previous preview stays until the next one arrives.
  return { preview: refusal === null ? query.data : undefined, refusal };
}

function EditSchedule({ schedule, onClose }: { schedule: Schedule | null; onClose: () => void }) {
  const [draft, setDraft] = useState(() => toScheduleDraft(schedule, Intl.DateTimeFormat().resolvedOptions().timeZone));
  const { preview, refusal } = usePreview(draft);
  const tasks = useQuery(tasksQuery);
  const save = useMutationWithToast({
    run: (data: string | undefined) =>
      schedule === null ? putSchedule(draft, data) : changeSchedule(schedule.id, draft, data),
    successMessage: (_, answered) => `${answered.schedule.name}: ${answered.schedule.words}`,
    invalidates: INVALIDATED,
    onDone: onClose,
    hidesErrors: true,
  });
  return (
    <ScheduleEditor
      draft={draft}
      schedule={schedule}
      tasks={(tasks.data ?? []).map(({ name }) => name)}
      preview={preview}
      ruleError={refusal}
      isBusy={save.isPending}
      error={save.error}
      onChange={setDraft}
      onClose={onClose}
      onSave={(data) => save.mutate(data)}
    />
  );
}
