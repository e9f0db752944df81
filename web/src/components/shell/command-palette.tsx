/** The command palette: opens pages, jobs by ID, queues, tasks, workflows and schedules, and runs actions. */

import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Command } from "cmdk";
import { useDeferredValue, useState, type ReactNode } from "react";

import { ApiError } from "@/api/http-client";
import { jobByIdQuery } from "@/api/job-detail";
import { queueNamesQuery, workflowAndScheduleNamesQuery } from "@/api/name-suggestions";
import { useHasRole, useSession } from "@/api/session";
import { tasksQuery } from "@/api/tasks";
import { JobStateBadge } from "@/components/badges";
import { NAVIGATION } from "@/components/shell/navigation";
import { useLogOut } from "@/components/shell/use-log-out";
import { ShortcutKeys } from "@/components/shortcut-keys";
import { setTheme } from "@/lib/theme-setting";
import { useLive } from "@/live/live-provider";

const ITEM =
  "flex min-h-9 cursor-pointer items-center gap-2 rounded px-2 py-1.5 text-[13px] data-[selected=true]:bg-sunken";
const GROUP =
  "[&_[cmdk-group-heading]]:px-2 [&_[cmdk-group-heading]]:pt-2 [&_[cmdk-group-heading]]:pb-1 [&_[cmdk-group-heading]]:text-xs [&_[cmdk-group-heading]]:text-muted";
/** A job ID has a queue or a digit: a plain word is more likely the name of a page. */
const ID = /^(?:[\w.~-]+:[\w.-]+|[A-Za-z._-]*\d[\w.-]*)(?:@[0-9a-z]+)?$/;

const SHORTCUTS: readonly (readonly [keys: string, what: string])[] = [
  ["mod+k", "go to a job or page"],
  ["n", "new job"],
  ["f", "filter the jobs"],
  ["x", "select the row"],
  ["shift+↓", "extend the selection"],
  ["esc", "clear the selection, close"],
];

/** Every typed word must occur. A fuzzy match would offer an unrelated ID for letters that it contains somewhere. */
export function matchScore(value: string, search: string): number {
  const text = value.toLowerCase();
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.every((word) => text.includes(word))) return 0;
  return words.every((word) => text.startsWith(word) || text.includes(` ${word}`)) ? 1 : 0.5;
}

interface CommandPaletteProps {
  areKeysOpen: boolean;
  typed: string;
  onType: (text: string) => void;
  onClose: () => void;
}

export default function CommandPalette({ areKeysOpen, typed, onType, onClose }: CommandPaletteProps) {
  const [areKeysShown, setKeysShown] = useState(areKeysOpen);
  const wanted = useDeferredValue(typed.trim());
  const navigate = useNavigate();
  const leave = useLogOut();
  const session = useSession();
  const isAdmin = useHasRole("admin");
  const mayEnqueue = useHasRole("operator");
  const { status, setPaused } = useLive();
  const queues = useQuery(queueNamesQuery).data ?? [];
  const tasks = useQuery(tasksQuery).data ?? [];
  const names = useQuery(workflowAndScheduleNamesQuery).data;

  function go(to: () => unknown) {
    onClose();
    void to();
  }

  return (
    <Command.Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      label="Go to a job or page"
      filter={matchScore}
      overlayClassName="fixed inset-0 z-40 bg-[#000]/50"
      contentClassName="fixed top-[10vh] left-1/2 z-50 w-[calc(100vw-2rem)] max-w-xl -translate-x-1/2 overflow-hidden rounded-lg border bg-raised shadow-pop"
    >
      <Command.Input
        value={typed}
        onValueChange={onType}
        // Text that was typed while the palette was loading is continued at its end. Without `autoFocus` the dialog
        // would select it.
        autoFocus
        onFocus={({ target }) => target.setSelectionRange(typed.length, typed.length)}
        placeholder="Job ID, page, queue or task"
        className="h-11 w-full border-b bg-transparent px-4 outline-none placeholder:text-muted"
      />
      <Command.List className="max-h-[60vh] overflow-y-auto p-1">
        <Command.Empty className="px-3 py-6 text-center text-muted">No results.</Command.Empty>
        <JobByIdItem id={wanted} onOpen={(id) => go(() => navigate({ to: "/jobs/$id", params: { id } }))} />
        <Command.Group heading="Pages" className={GROUP}>
          {NAVIGATION.flatMap(({ places }) => places)
            .filter((place) => isAdmin || !place.isForAdmins)
            .map(({ to, label, icon: Icon, key }) => (
              <Item key={to} value={`page ${label}`} onSelect={() => go(() => navigate({ to }))} keys={`g ${key}`}>
                <Icon aria-hidden className="size-4 text-muted" />
                {label}
              </Item>
            ))}
        </Command.Group>
        <Command.Group heading="Actions" className={GROUP}>
          {mayEnqueue && (
            <Item value="action new job enqueue" keys="n" onSelect={() => go(() => navigate({ to: "/jobs/new" }))}>
              New job
            </Item>
          )}
          <Item value="action pause resume live updates" onSelect={() => go(() => setPaused(status !== "paused"))}>
            {status === "paused" ? "Resume live updates" : "Pause live updates"}
          </Item>
          {(["light", "dark", "system"] as const).map((theme) => (
            <Item key={theme} value={`action theme ${theme}`} onSelect={() => go(() => setTheme(theme))}>
              Theme: {theme}
            </Item>
          ))}
          <Item value="action keyboard shortcuts keys ?" keys="?" onSelect={() => setKeysShown(!areKeysShown)}>
            Keyboard shortcuts
          </Item>
          {session.csrf !== null && (
            <Item value="action log out" onSelect={() => go(leave)}>
              Log out
            </Item>
          )}
        </Command.Group>
        {wanted !== "" && (
          <>
            <Names
              heading="Queues"
              names={queues}
              onSelect={(queue) => go(() => navigate({ to: "/queues/$name", params: { name: queue } }))}
            />
            <Names
              heading="Tasks"
              names={tasks.map(({ name }) => name)}
              onSelect={(task) => go(() => navigate({ to: "/tasks/$name", params: { name: task } }))}
            />
            <Names
              heading="Workflows"
              names={names?.workflows ?? []}
              onSelect={(id) => go(() => navigate({ to: "/workflows/$id", params: { id } }))}
            />
            <Names
              heading="Schedules"
              names={names?.schedules ?? []}
              onSelect={() => go(() => navigate({ to: "/schedules" }))}
            />
          </>
        )}
      </Command.List>
      {areKeysShown && (
        <dl aria-label="Keyboard shortcuts" className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1.5 border-t p-4">
          {SHORTCUTS.map(([keys, what]) => (
            <div key={keys} className="contents">
              <dt>
                <ShortcutKeys keys={keys} />
              </dt>
              <dd className="text-muted">{what}</dd>
            </div>
          ))}
        </dl>
      )}
    </Command.Dialog>
  );
}

function Item(props: { value: string; keys?: string; onSelect: () => void; children: ReactNode }) {
  return (
    <Command.Item value={props.value} onSelect={props.onSelect} className={ITEM}>
      <span className="flex min-w-0 flex-1 items-center gap-2 truncate">{props.children}</span>
      {props.keys !== undefined && <ShortcutKeys keys={props.keys} />}
    </Command.Item>
  );
}

function Names(props: { heading: string; names: readonly string[]; onSelect: (name: string) => void }) {
  return (
    <Command.Group heading={props.heading} className={GROUP}>
      {props.names.slice(0, 200).map((name) => (
        <Item key={name} value={`${props.heading} ${name}`} onSelect={() => props.onSelect(name)}>
          {name}
        </Item>
      ))}
    </Command.Group>
  );
}

/** The job with the typed ID; shows whether it exists. */
function JobByIdItem({ id, onOpen }: { id: string; onOpen: (id: string) => void }) {
  const isId = ID.test(id);
  const { data, error } = useQuery({ ...jobByIdQuery(isId ? id : undefined), retry: false, staleTime: 1000 });
  if (!isId) return null;
  if (data !== undefined) {
    return (
      <Command.Group heading="Job" className={GROUP} forceMount>
        <Command.Item value={`job ${id}`} forceMount onSelect={() => onOpen(data.jobId)} className={ITEM}>
          <JobStateBadge state={data.status} />
          <span className="min-w-0 flex-1 truncate font-mono text-xs">{data.jobId}</span>
          <span className="text-xs text-muted">{data.type}</span>
        </Command.Item>
      </Command.Group>
    );
  }
  const isMissing = error instanceof ApiError && error.status === 404;
  return isMissing ? (
    <p role="status" className="px-3 py-2 text-xs text-muted">
      No job “{id}”.
    </p>
  ) : null;
}
