import type { ReactNode } from "react";

import type { Scaling } from "@/api/scaling";
import { Badge } from "@/components/badges";
import { Panel } from "@/components/panel";
import { RelativeTime } from "@/components/relative-time-and-duration";
import { StartAutoscalerCommand } from "@/components/scaling/start-autoscaler";
import { classNames } from "@/lib/class-names";
import { formatPlural } from "@/lib/format-number";
import { formatDuration } from "@/lib/format-time";

type PlannerState = "stopped" | "paused" | "dry run" | "holding" | "planning";

const STATES: Record<PlannerState, readonly [label: string, look: string]> = {
  stopped: ["not running", "bg-failed-soft text-failed"],
  paused: ["paused", "bg-blocked-soft text-blocked"],
  "dry run": ["dry run", "bg-scheduled-soft text-scheduled"],
  holding: ["holding", "bg-blocked-soft text-blocked"],
  planning: ["planning", "bg-completed-soft text-completed"],
};

const EXPLANATIONS: Partial<Record<PlannerState, string>> = {
  paused: "It observes and decides, but launches and drains nothing until it is resumed.",
  "dry run": "It was set to decide without acting: nothing is launched or drained.",
};

function plannerState({ planner, settings, latest }: Scaling): PlannerState {
  if (planner === null) return "stopped";
  if (settings.is_paused) return "paused";
  if (settings.is_dry_run) return "dry run";
  return latest?.is_hold ? "holding" : "planning";
}

/** The planner that holds the lease: its state, what it decided last and why, its settings, and who stands by. */
export function PlannerPanel({ scaling }: { scaling: Scaling }) {
  const { planner, settings, standby, latest } = scaling;
  const state = plannerState(scaling);
  const [label, look] = STATES[state];
  const isChanged = settings.changed.some((name) => name === "min_workers" || name === "max_workers");
  return (
    <Panel
      aria-label="Autoscaler"
      title={
        <span className="flex items-center gap-2">
          Autoscaler <Badge className={look}>{label}</Badge>
        </span>
      }
      actions={
        latest !== null && (
          <span className="text-xs text-muted">
            last decision <RelativeTime at={latest.at} />
          </span>
        )
      }
    >
      <div className="flex flex-col gap-3">
        {state === "stopped" && (
          <div>
            <p>No autoscaler is running: no worker is started or drained. Start one:</p>
            <StartAutoscalerCommand />
          </div>
        )}
        {EXPLANATIONS[state] !== undefined && <p className="text-blocked">{EXPLANATIONS[state]}</p>}
        {latest !== null && (
          <ul aria-label="Reasons of the last decision" className="flex flex-col gap-0.5">
            {latest.reasons.map((reason, place) => (
              <li key={reason} className={classNames("break-words", place > 0 && "text-muted")}>
                {reason}
              </li>
            ))}
          </ul>
        )}
        {planner !== null && latest === null && <p className="text-muted">The first decision follows in a moment.</p>}
        <dl className="grid grid-cols-2 gap-x-6 gap-y-2 border-t pt-3 sm:grid-cols-4 xl:grid-cols-8">
          {planner !== null && (
            <>
              <Property name="Planner">
                <span title={planner.id}>
                  {planner.host}
                  <span className="text-muted">, pid {planner.pid}</span>
                </span>
              </Property>
              <Property name="Provider">{planner.provider}</Property>
            </>
          )}
          {settings.policy !== null && <Property name="Policy">{settings.policy}</Property>}
          {settings.min_workers !== null && settings.max_workers !== null && (
            <Property name="Limits">
              <span className="tabular-nums">
                {settings.min_workers} to {formatPlural(settings.max_workers, "worker")}
              </span>
              {isChanged && <span className="block text-xs text-muted">changed at run time</span>}
            </Property>
          )}
          {settings.target_wait_ms !== null && (
            <Property name="Target wait">{formatDuration(settings.target_wait_ms)}</Property>
          )}
          {settings.interval_ms !== null && <Property name="Interval">{formatDuration(settings.interval_ms)}</Property>}
          {planner !== null && (
            <Property name="Queues">{planner.queues.length === 0 ? "all" : planner.queues.join(", ")}</Property>
          )}
          <Property name="Standby">
            {standby.length === 0 ? (
              <span className="text-muted">none</span>
            ) : (
              <span title={standby.join("\n")}>{formatPlural(standby.length, "planner")}</span>
            )}
          </Property>
        </dl>
      </div>
    </Panel>
  );
}

function Property({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className="min-w-0">
      <dt className="text-xs text-muted">{name}</dt>
      <dd className="text-[13px] break-words">{children}</dd>
    </div>
  );
}
