/** Badges: a plain one, and those of job and workflow states. */

import type { ReactNode } from "react";

import { classNames } from "@/lib/class-names";
import {
  JOB_STATE_STYLES,
  WORKFLOW_STATE_STYLES,
  type JobState,
  type StateStyle,
  type WorkflowState,
} from "@/lib/job-and-workflow-states";

export function Badge({ children, className, title }: { children: ReactNode; className?: string; title?: string }) {
  return (
    <span
      title={title}
      className={classNames(
        "inline-flex items-center gap-1.5 rounded px-1.5 py-0.5 text-xs font-medium whitespace-nowrap",
        "-outline-offset-1 contrast-more:outline-1 forced-colors:outline-1",
        className ?? "bg-sunken text-muted",
      )}
    >
      {children}
    </span>
  );
}

function StyledBadge({ tone, isAnimated }: { tone: StateStyle; isAnimated: boolean }) {
  return (
    <Badge className={tone.badge} title={tone.meaning}>
      <span
        aria-hidden
        className={classNames(
          "size-1.5 rounded-full forced-color-adjust-none",
          tone.mark,
          isAnimated && "animate-[breathe_1.6s_ease-in-out_infinite]",
        )}
      />
      {tone.label}
    </Badge>
  );
}

export function JobStateBadge({ state }: { state: JobState }) {
  return <StyledBadge tone={JOB_STATE_STYLES[state]} isAnimated={state === "PROCESSING"} />;
}

export function WorkflowStateBadge({ state }: { state: WorkflowState }) {
  return <StyledBadge tone={WORKFLOW_STATE_STYLES[state]} isAnimated={state === "RUNNING" || state === "UNDOING"} />;
}
