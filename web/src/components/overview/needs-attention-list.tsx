import { Link, linkOptions } from "@tanstack/react-router";
import { ChevronRight, CircleAlert, CircleCheck, TriangleAlert } from "lucide-react";

import type { Alert } from "@/api/overview";
import { Panel } from "@/components/panel";
import { TextWithInlineCode } from "@/components/text-with-inline-code";
import { classNames } from "@/lib/class-names";
import { formatPlural } from "@/lib/format-number";
import { toFullSentence } from "@/lib/format-server-message";
import type { WorkflowState } from "@/lib/job-and-workflow-states";
import type { WorkflowsSearch } from "@/routes/workflows.search-params";

type Kind = Alert["kind"];

const TITLES: Record<Exclude<Kind, "server">, (count: number) => string> = {
  parked_workflows: (count) => formatPlural(count, "parked workflow"),
  held_workflows: (count) => formatPlural(count, "held workflow"),
  dead_letters: (count) => formatPlural(count, "dead letter"),
  dead_workers: (count) => formatPlural(count, "dead worker"),
  unserved_queues: (count) => `${formatPlural(count, "queue")} without a worker`,
  paused_queues: (count) => formatPlural(count, "paused queue"),
  orphaned_schedules: (count) => formatPlural(count, "orphaned schedule"),
};

function alertTitle({ kind, count, names }: Alert): string {
  if (kind !== "server") return TITLES[kind](count);
  const check = names.join();
  return check === "server" ? "The store" : `The store’s ${check}`;
}

/** The page that an alert links to; a store at risk has none. */
export function linkTarget({ kind, names }: Alert) {
  const only = names.length === 1 ? names[0] : undefined;
  switch (kind) {
    case "server":
      return null;
    case "parked_workflows":
    case "held_workflows":
      return only === undefined
        ? linkOptions({ to: "/workflows", search: workflowSearch(kind === "held_workflows" ? "FAILED" : "PARKED") })
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

function workflowSearch(state: WorkflowState): WorkflowsSearch {
  return { state };
}

/** Alerts that need action, the most severe first; or a note that there are none. */
export function NeedsAttentionList({ alerts }: { alerts: readonly Alert[] }) {
  if (alerts.length === 0) {
    return (
      <p className="flex items-center gap-2 rounded-lg border bg-surface px-4 py-3 text-muted">
        <CircleCheck aria-hidden className="size-4 text-completed" />
        Nothing needs attention.
      </p>
    );
  }
  return (
    <Panel title="Needs attention" isFlush>
      <ul className="divide-y">
        {alerts.map((one) => (
          <li key={`${one.kind} ${one.names.join()}`}>
            <Row alert={one} />
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Row({ alert }: { alert: Alert }) {
  const place = linkTarget(alert);
  const isFailing = alert.level === "fail";
  const Icon = isFailing ? CircleAlert : TriangleAlert;
  const look = "flex items-center gap-3 px-4 py-2.5";
  const content = (
    <>
      <Icon
        aria-label={isFailing ? "failure" : "warning"}
        className={classNames("size-4 shrink-0", isFailing ? "text-failed" : "text-blocked")}
      />
      <span className="min-w-0 flex-1">
        <span className="tabular-nums font-medium">{alertTitle(alert)}</span>
        {alert.kind === "server" ? (
          <span className="block text-muted">
            <TextWithInlineCode text={toFullSentence(alert.message)} />
          </span>
        ) : (
          <>
            <span className="text-muted">
              : <TextWithInlineCode text={alert.message} />
            </span>
            <span className="line-clamp-1 text-xs break-all text-muted">{alert.names.join(", ")}</span>
          </>
        )}
      </span>
    </>
  );
  if (place === null) return <div className={look}>{content}</div>;
  return (
    <Link {...place} className={classNames(look, "hover:bg-sunken")}>
      {content}
      <ChevronRight aria-hidden className="size-4 shrink-0 text-muted" />
    </Link>
  );
}
