import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { useCallback, useState } from "react";

import { keys } from "@/api/keys";
import {
  aheadQuery,
  changeSchedule,
  draftOf,
  pauseSchedule,
  previewQuery,
  putSchedule,
  removeSchedule,
  resumeSchedule,
  ruleOf,
  runSchedule,
  scheduleRunsQuery,
  schedulesQuery,
  type Draft,
  type Rule,
  type Schedule,
} from "@/api/schedules";
import { useMay } from "@/api/session";
import { tasksQuery } from "@/api/tasks";
import { Button } from "@/components/button";
import { Choice } from "@/components/choice";
import { Confirm } from "@/components/dialog";
import { FilterField } from "@/components/filter-field";
import { JobLink } from "@/components/links";
import { Empty, FilteredEmpty, Loaded } from "@/components/looks";
import { Page } from "@/components/page";
import { Panel } from "@/components/panel";
import { AheadMap, aheadWords } from "@/components/schedules/ahead";
import { ScheduleEditor } from "@/components/schedules/editor";
import { ScheduleRuns } from "@/components/schedules/runs";
import { ScheduleList } from "@/components/schedules/schedule-list";
import type { TimesIn } from "@/components/schedules/times";
import { useAct } from "@/lib/act";
import { plural } from "@/lib/numbers";
import { usePaused } from "@/lib/pause";
import { gapOf } from "@/lib/rule";
import { useSeen } from "@/lib/seen";
import { useZone } from "@/lib/zone";
import { usePolling } from "@/live/polling";
import type { SchedulesSearch } from "@/routes/schedules.search";

const route = getRouteApi("/inside/schedules");
/** The next run moves on; that it came is told by an event. */
const LOOK_MS = 10_000;
/** As long as one thinks between two keys. */
const TYPING_MS = 400;
const CHANGES = [keys.schedules, keys.overview];

export function SchedulesRoute() {
  const { text = "", zone = "own" } = route.useSearch();
  const navigate = route.useNavigate();
  const mayRun = useMay("operator");
  const mayRemove = useMay("admin");
  const schedules = useQuery({ ...schedulesQuery, refetchInterval: usePolling(LOOK_MS) });
  const [removing, setRemoving] = useState<Schedule | null>(null);
  const [editing, setEditing] = useState<Schedule | "new" | null>(null);

  const filter = useCallback(
    (change: SchedulesSearch) =>
      void navigate({ search: (before) => ({ ...before, ...change }), replace: true, resetScroll: false }),
    [navigate],
  );
  const filterText = useCallback((wanted: string) => filter({ text: wanted || undefined }), [filter]);

  const pause = useAct({
    act: ({ id }: Schedule) => pauseSchedule(id),
    said: ({ name }) => `${name} is paused`,
    changes: CHANGES,
  });
  const resume = useAct({
    act: ({ id }: Schedule) => resumeSchedule(id),
    said: ({ name }) => `${name} goes on`,
    changes: CHANGES,
  });
  const run = useAct({
    act: ({ id }: Schedule) => runSchedule(id),
    said: (_, { jobId }) => (
      <>
        Enqueued <JobLink id={jobId} />
      </>
    ),
    changes: CHANGES,
  });
  const remove = useAct({
    act: ({ id }: Schedule) => removeSchedule(id),
    said: (_, { message }) => message,
    changes: CHANGES,
    onDone: () => setRemoving(null),
    isQuiet: true,
  });

  return (
    <Page
      title="Schedules"
      lead={schedules.data && plural(schedules.data.length, "schedule")}
      actions={
        <>
          <FilterField label="Filter by name or task" value={text} onChange={filterText} />
          <Choice
            label="Times in"
            value={zone}
            onChange={(chosen) => filter({ zone: chosen === "own" ? undefined : chosen })}
            options={[
              { value: "own", label: "Own zone" },
              { value: "local", label: "Local" },
              { value: "utc", label: "UTC" },
            ]}
          />
          {mayRun && (
            <Button look="primary" onClick={() => setEditing("new")}>
              <Plus aria-hidden className="size-3.5" /> New schedule
            </Button>
          )}
        </>
      }
    >
      {/* Where even the schedules cannot be read, one complaint is enough. */}
      {schedules.data !== undefined && <WhatIsAhead zone={zone} />}
      <Loaded query={schedules} lines={8}>
        {(all) => {
          if (all.length === 0) {
            return (
              <Empty title="No schedules yet">
                Declare one beside its task with <code>@rota.cron</code> or <code>@rota.every</code>, or make one here.
              </Empty>
            );
          }
          const wanted = text.toLowerCase();
          const shown = all.filter(({ id, type }) => `${id} ${type}`.toLowerCase().includes(wanted));
          if (shown.length === 0) return <FilteredEmpty what="schedules" onClear={() => filterText("")} />;
          return (
            <ScheduleList
              schedules={shown}
              zone={zone}
              runsOf={(schedule) => <Runs schedule={schedule} zone={zone} />}
              onPause={mayRun ? (schedule) => pause.mutate(schedule) : undefined}
              onResume={mayRun ? (schedule) => resume.mutate(schedule) : undefined}
              onRun={mayRun ? (schedule) => run.mutate(schedule) : undefined}
              onEdit={mayRun ? setEditing : undefined}
              onRemove={mayRemove ? setRemoving : undefined}
            />
          );
        }}
      </Loaded>
      {removing !== null && (
        <Confirm
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
          No more jobs come from it; those that it made stay.
          {removing.is_declared && !removing.is_orphaned && " A worker that declares it brings it back when it starts."}
        </Confirm>
      )}
      {editing !== null && <Editing schedule={editing === "new" ? null : editing} onClose={() => setEditing(null)} />}
    </Page>
  );
}

function WhatIsAhead({ zone }: { zone: TimesIn }) {
  const chosen = useZone();
  const ahead = useQuery({ ...aheadQuery, refetchInterval: usePolling(LOOK_MS) });
  return (
    // On a phone it is longer than the screen: what can be acted upon comes first.
    <Panel
      title="Ahead"
      className="max-lg:order-last"
      actions={ahead.data && <span className="figures text-xs text-muted">{aheadWords(ahead.data)}</span>}
    >
      <Loaded query={ahead} lines={8}>
        {(data) => <AheadMap ahead={data} zone={zone === "own" ? chosen : zone} />}
      </Loaded>
    </Panel>
  );
}

/** Read only while they can be seen: there may be hundreds of schedules. */
function Runs({ schedule, zone }: { schedule: Schedule; zone: TimesIn }) {
  const [ref, isSeen] = useSeen<HTMLDivElement>();
  const runs = useQuery({ ...scheduleRunsQuery(schedule), enabled: isSeen, refetchInterval: usePolling(LOOK_MS) });
  return (
    <div ref={ref}>
      <ScheduleRuns runs={runs.data} error={runs.error} zone={zone} />
    </div>
  );
}

/** What the rule means that is being written, and what is wrong with it: once it is all there, and nobody types. */
function usePreview(draft: Draft) {
  const typed = JSON.stringify(ruleOf(draft));
  const asked = usePaused(typed, TYPING_MS);
  const isTyping = asked !== typed;
  const gap = gapOf(draft);
  const query = useQuery({
    ...previewQuery(JSON.parse(asked) as Rule),
    enabled: gap === null && !isTyping,
    placeholderData: keepPreviousData,
  });
  const wrong = gap ?? (query.error && { field: draft.kind, message: query.error.message });
  const refusal = isTyping ? null : wrong;
  // While one types, and until the answer comes, the last one stays.
  return { preview: refusal === null ? query.data : undefined, refusal };
}

function Editing({ schedule, onClose }: { schedule: Schedule | null; onClose: () => void }) {
  const [draft, setDraft] = useState(() => draftOf(schedule, Intl.DateTimeFormat().resolvedOptions().timeZone));
  const { preview, refusal } = usePreview(draft);
  const tasks = useQuery(tasksQuery);
  const save = useAct({
    act: (data: string | undefined) =>
      schedule === null ? putSchedule(draft, data) : changeSchedule(schedule.id, draft, data),
    said: (_, answered) => `${answered.schedule.name}: ${answered.schedule.words}`,
    changes: CHANGES,
    onDone: onClose,
    isQuiet: true,
  });
  return (
    <ScheduleEditor
      draft={draft}
      schedule={schedule}
      tasks={(tasks.data ?? []).map(({ name }) => name)}
      preview={preview}
      refusal={refusal}
      isBusy={save.isPending}
      error={save.error}
      onChange={setDraft}
      onClose={onClose}
      onSave={(data) => save.mutate(data)}
    />
  );
}
