import type { ReactNode } from "react";

import { classes } from "@/lib/classes";
import { JOB_TONES, WORKFLOW_TONES, type JobState, type Tone, type WorkflowState } from "@/lib/states";

export function Badge({ children, className, title }: { children: ReactNode; className?: string; title?: string }) {
  return (
    <span
      title={title}
      className={classes(
        "inline-flex items-center gap-1.5 rounded px-1.5 py-0.5 text-xs font-medium whitespace-nowrap",
        "-outline-offset-1 contrast-more:outline-1 forced-colors:outline-1",
        className ?? "bg-sunken text-muted",
      )}
    >
      {children}
    </span>
  );
}

function ToneBadge({ tone, isMoving }: { tone: Tone; isMoving: boolean }) {
  return (
    <Badge className={tone.badge} title={tone.meaning}>
      <span
        aria-hidden
        className={classes(
          "size-1.5 rounded-full forced-color-adjust-none",
          tone.mark,
          isMoving && "animate-[breathe_1.6s_ease-in-out_infinite]",
        )}
      />
      {tone.label}
    </Badge>
  );
}

export function StateBadge({ state }: { state: JobState }) {
  return <ToneBadge tone={JOB_TONES[state]} isMoving={state === "PROCESSING"} />;
}

export function WorkflowBadge({ state }: { state: WorkflowState }) {
  return <ToneBadge tone={WORKFLOW_TONES[state]} isMoving={state === "RUNNING" || state === "UNDOING"} />;
}
