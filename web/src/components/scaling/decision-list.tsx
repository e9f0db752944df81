import type { ReactNode } from "react";

import type { ScalingDecision } from "@/api/scaling";
import { Badge } from "@/components/badges";
import { RelativeTime } from "@/components/relative-time-and-duration";
import { formatCount, formatPlural, formatShort } from "@/lib/format-number";
import { formatDuration } from "@/lib/format-time";
import { groupScalingDecisions, hasChangedPool, type DecisionGroup } from "@/lib/group-scaling-decisions";

/** Maximum number of machines that a decision names; the rest is counted. */
const MAX_NAMED = 5;

/** Stored decisions with their reasons, newest first. Those that changed nothing are folded. */
export function DecisionList({ decisions }: { decisions: readonly ScalingDecision[] }) {
  return (
    <ul aria-label="Decisions" className="divide-y">
      {groupScalingDecisions(decisions).map((group) => (
        // The oldest of a group stays when new ones arrive.
        <li key={group.at(-1)?.id}>
          <Group group={group} />
        </li>
      ))}
    </ul>
  );
}

function Group({ group: [newest, ...earlier] }: { group: DecisionGroup }) {
  const oldest = earlier.at(-1);
  return (
    <>
      <Decision decision={newest} />
      {oldest !== undefined && (
        <details className="px-4 pb-2.5 sm:pl-[19rem]">
          <summary className="w-fit rounded-md text-xs text-muted hover:text-text">
            {formatPlural(earlier.length, "earlier decision")} without a change, since <RelativeTime at={oldest.at} />
          </summary>
          <ul aria-label="Earlier decisions" className="mt-1.5 flex flex-col gap-1 text-xs text-muted">
            {earlier.map((decision) => (
              <li key={decision.id} className="grid gap-x-3 sm:grid-cols-[5rem_1fr]">
                <RelativeTime at={decision.at} />
                <span className="min-w-0 break-words">{decision.reasons.join(" ")}</span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

function Decision({ decision }: { decision: ScalingDecision }) {
  const [reason, ...more] = decision.reasons;
  return (
    <div className="grid grid-cols-[6rem_1fr] gap-x-4 gap-y-1 px-4 py-2.5 sm:grid-cols-[6rem_10rem_1fr]">
      <span className="text-[13px] text-muted">
        <RelativeTime at={decision.at} />
      </span>
      <span className="flex flex-wrap content-start items-start gap-1">
        <ChangeBadges decision={decision} />
      </span>
      <div className="min-w-0 text-[13px] max-sm:col-span-2">
        <p className="break-words">{reason}</p>
        {more.map((one) => (
          <p key={one} className="break-words text-muted">
            {one}
          </p>
        ))}
        <p className="tabular-nums mt-0.5 text-xs text-muted">{figures(decision)}</p>
        <Machines verb="launched" machines={decision.launched} />
        <Machines verb="drained" machines={decision.drained} />
        <Machines verb="removed" machines={decision.terminated} />
      </div>
    </div>
  );
}

function ChangeBadges({ decision }: { decision: ScalingDecision }) {
  const { launched, drained, terminated } = decision;
  const badges: ReactNode[] = [];
  const add = (text: string, look?: string) =>
    badges.push(
      <Badge key={text} className={look}>
        {text}
      </Badge>,
    );
  if (decision.is_hold) add("hold", "bg-blocked-soft text-blocked");
  if (decision.is_paused) add("paused", "bg-blocked-soft text-blocked");
  if (decision.is_dry_run) add("dry run", "bg-scheduled-soft text-scheduled");
  if (launched.length > 0) add(`+${formatCount(launched.length)} launched`, "bg-completed-soft text-completed");
  if (drained.length > 0) add(`−${formatCount(drained.length)} drained`, "bg-pending-soft text-pending");
  if (terminated.length > 0) add(`${formatCount(terminated.length)} removed`);
  if (!hasChangedPool(decision) && badges.length === 0) add("no change");
  return badges;
}

/** "4 wanted: 3 running, 1 booting; 120 pending, oldest wait 12 s". Zeros are left out. */
function figures({ wanted, running, booting, draining, backlog, oldest_wait_ms: wait }: ScalingDecision): string {
  const workers = [
    `${formatCount(running)} running`,
    ...(booting > 0 ? [`${formatCount(booting)} booting`] : []),
    ...(draining > 0 ? [`${formatCount(draining)} draining`] : []),
  ];
  const oldest = wait === null ? "" : `, oldest wait ${formatDuration(wait)}`;
  return `${formatCount(wanted)} wanted: ${workers.join(", ")}; ${formatShort(backlog)} pending${oldest}`;
}

function Machines({ verb, machines }: { verb: string; machines: readonly string[] }) {
  if (machines.length === 0) return null;
  const rest = machines.length - MAX_NAMED;
  return (
    <p className="mt-0.5 text-xs break-all text-muted" title={machines.join("\n")}>
      {verb} <span className="font-mono">{machines.slice(0, MAX_NAMED).join(", ")}</span>
      {rest > 0 && ` and ${formatCount(rest)} more`}
    </p>
  );
}
