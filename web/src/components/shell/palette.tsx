/** From anywhere to anything: pages, a job by its id, names that the server knows, and what one can do. */

import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Command } from "cmdk";
import { useDeferredValue, useState, type ReactNode } from "react";

import { ApiError } from "@/api/client";
import { copiedQuery } from "@/api/jobs";
import { overviewNames } from "@/api/names";
import { useMay, useSession } from "@/api/session";
import { queueNamesQuery, tasksQuery } from "@/api/tasks";
import { StateBadge } from "@/components/badge";
import { Kbd } from "@/components/kbd";
import { useLeave } from "@/components/shell/leave";
import { PLACES } from "@/components/shell/navigation";
import { chooseTheme } from "@/lib/theme";
import { useLive } from "@/live/live";

const ITEM =
  "flex min-h-9 cursor-pointer items-center gap-2 rounded px-2 py-1.5 text-[13px] data-[selected=true]:bg-sunken";
const GROUP =
  "[&_[cmdk-group-heading]]:px-2 [&_[cmdk-group-heading]]:pt-2 [&_[cmdk-group-heading]]:pb-1 [&_[cmdk-group-heading]]:text-xs [&_[cmdk-group-heading]]:text-muted";
/** With its queue, or with a digit in it: a plain word is more likely the name of a page. */
const ID = /^(?:[\w.~-]+:[\w.-]+|[A-Za-z._-]*\d[\w.-]*)(?:@[0-9a-z]+)?$/;

const KEYS: readonly (readonly [keys: string, what: string])[] = [
  ["mod+k", "jump to a job or page"],
  ["n", "new job"],
  ["f", "filter the jobs"],
  ["x", "choose the job of this row"],
  ["shift+↓", "choose more rows"],
  ["esc", "choose none, close"],
];

export default function Palette({ areKeysOpen, onClose }: { areKeysOpen: boolean; onClose: () => void }) {
  const [typed, setTyped] = useState("");
  const [areKeysShown, setKeysShown] = useState(areKeysOpen);
  const wanted = useDeferredValue(typed.trim());
  const navigate = useNavigate();
  const leave = useLeave();
  const session = useSession();
  const isAdmin = useMay("admin");
  const mayEnqueue = useMay("operator");
  const { status, setPaused } = useLive();
  const queues = useQuery(queueNamesQuery).data ?? [];
  const tasks = useQuery(tasksQuery).data ?? [];
  const names = useQuery(overviewNames).data;

  function go(to: () => unknown) {
    onClose();
    void to();
  }

  return (
    <Command.Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      label="Jump to a job or page"
      overlayClassName="fixed inset-0 z-40 bg-[#000]/50"
      contentClassName="fixed top-[10vh] left-1/2 z-50 w-[calc(100vw-2rem)] max-w-xl -translate-x-1/2 overflow-hidden rounded-lg border bg-raised shadow-pop"
    >
      <Command.Input
        value={typed}
        onValueChange={setTyped}
        placeholder="A job's id, a page, a queue, a task"
        className="h-11 w-full border-b bg-transparent px-4 outline-none placeholder:text-muted"
      />
      <Command.List className="max-h-[60vh] overflow-y-auto p-1">
        <Command.Empty className="px-3 py-6 text-center text-muted">Nothing is called that.</Command.Empty>
        <JobByIdItem id={wanted} onOpen={(id) => go(() => navigate({ to: "/jobs/$id", params: { id } }))} />
        <Command.Group heading="Pages" className={GROUP}>
          {PLACES.flatMap(({ places }) => places)
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
          <Item value="action pause live updates hold still" onSelect={() => go(() => setPaused(status !== "paused"))}>
            {status === "paused" ? "Go on updating" : "Hold everything still"}
          </Item>
          {(["light", "dark", "system"] as const).map((theme) => (
            <Item key={theme} value={`action theme ${theme}`} onSelect={() => go(() => chooseTheme(theme))}>
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
              onSelect={(queue) => go(() => navigate({ to: "/jobs", search: { queue } }))}
            />
            <Names
              heading="Tasks"
              names={tasks.map(({ name }) => name)}
              onSelect={(task) => go(() => navigate({ to: "/jobs", search: { task } }))}
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
          {KEYS.map(([keys, what]) => (
            <div key={keys} className="contents">
              <dt>
                <Kbd keys={keys} />
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
      {props.keys !== undefined && <Kbd keys={props.keys} />}
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

/** A job whose id was typed: whether there is one is said before one goes there. */
function JobByIdItem({ id, onOpen }: { id: string; onOpen: (id: string) => void }) {
  const isId = ID.test(id);
  const { data, error } = useQuery({ ...copiedQuery(isId ? id : undefined), retry: false, staleTime: 1000 });
  if (!isId) return null;
  if (data !== undefined) {
    return (
      <Command.Group heading="Job" className={GROUP} forceMount>
        <Command.Item value={`job ${id}`} forceMount onSelect={() => onOpen(data.jobId)} className={ITEM}>
          <StateBadge state={data.status} />
          <span className="min-w-0 flex-1 truncate font-mono text-xs">{data.jobId}</span>
          <span className="text-xs text-muted">{data.type}</span>
        </Command.Item>
      </Command.Group>
    );
  }
  const isMissing = error instanceof ApiError && error.status === 404;
  return isMissing ? (
    <p role="status" className="px-3 py-2 text-xs text-muted">
      There is no job “{id}”.
    </p>
  ) : null;
}
