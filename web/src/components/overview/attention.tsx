import { Link, linkOptions } from "@tanstack/react-router";
import { ChevronRight, CircleAlert, CircleCheck, TriangleAlert } from "lucide-react";

import type { Attention } from "@/api/overview";
import { Coded } from "@/components/coded";
import { Panel } from "@/components/panel";
import { classes } from "@/lib/classes";
import { fullSentence } from "@/lib/explanation";
import { plural } from "@/lib/numbers";
import type { WorkflowState } from "@/lib/states";
import type { WorkflowsSearch } from "@/routes/workflows.search";

type Kind = Attention["kind"];

const NOUNS: Record<Exclude<Kind, "server">, (count: number) => string> = {
  parked_workflows: (count) => plural(count, "parked workflow"),
  held_workflows: (count) => plural(count, "held workflow"),
  dead_letters: (count) => plural(count, "dead letter"),
  dead_workers: (count) => plural(count, "dead worker"),
  unserved_queues: (count) => `${plural(count, "queue")} without a worker`,
  paused_queues: (count) => plural(count, "paused queue"),
  orphaned_schedules: (count) => plural(count, "orphaned schedule"),
};

function nounOf({ kind, count, names }: Attention): string {
  if (kind !== "server") return NOUNS[kind](count);
  const check = names.join();
  return check === "server" ? "The store" : `The store’s ${check}`;
}

/** Where it can be solved; a store at risk is mended elsewhere. */
export function placeOf({ kind, names }: Attention) {
  const only = names.length === 1 ? names[0] : undefined;
  switch (kind) {
    case "server":
      return null;
    case "parked_workflows":
    case "held_workflows":
      return only === undefined
        ? linkOptions({ to: "/workflows", search: workflowsOf(kind === "held_workflows" ? "FAILED" : "PARKED") })
        : linkOptions({ to: "/workflows/$id", params: { id: only } });
    case "dead_letters":
      return linkOptions({ to: "/dead", search: { queue: only } });
    case "dead_workers":
      return linkOptions({ to: "/workers" });
    case "unserved_queues":
    case "paused_queues":
      return linkOptions({ to: "/queues", search: { text: only } });
    case "orphaned_schedules":
      return linkOptions({ to: "/schedules" });
  }
}

function workflowsOf(state: WorkflowState): WorkflowsSearch {
  return { state };
}

/** What needs a person, the worst first; or that nothing does. */
export function AttentionList({ attention }: { attention: readonly Attention[] }) {
  if (attention.length === 0) {
    return (
      <p className="flex items-center gap-2 rounded-lg border bg-surface px-4 py-3 text-muted">
        <CircleCheck aria-hidden className="size-4 text-completed" />
        Nothing needs your attention.
      </p>
    );
  }
  return (
    <Panel title="Needs attention" isFlush>
      <ul className="divide-y">
        {attention.map((one) => (
          <li key={`${one.kind} ${one.names.join()}`}>
            <Row attention={one} />
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Row({ attention }: { attention: Attention }) {
  const place = placeOf(attention);
  const isFailing = attention.level === "fail";
  const Icon = isFailing ? CircleAlert : TriangleAlert;
  const look = "flex items-center gap-3 px-4 py-2.5";
  const content = (
    <>
      <Icon
        aria-label={isFailing ? "failure" : "warning"}
        className={classes("size-4 shrink-0", isFailing ? "text-failed" : "text-blocked")}
      />
      <span className="min-w-0 flex-1">
        <span className="figures font-medium">{nounOf(attention)}</span>
        {attention.kind === "server" ? (
          <span className="block text-muted">
            <Coded text={fullSentence(attention.message)} />
          </span>
        ) : (
          <>
            <span className="text-muted">
              : <Coded text={attention.message} />
            </span>
            <span className="line-clamp-1 text-xs break-all text-muted">{attention.names.join(", ")}</span>
          </>
        )}
      </span>
    </>
  );
  if (place === null) return <div className={look}>{content}</div>;
  return (
    <Link {...place} className={classes(look, "hover:bg-sunken")}>
      {content}
      <ChevronRight aria-hidden className="size-4 shrink-0 text-muted" />
    </Link>
  );
}
