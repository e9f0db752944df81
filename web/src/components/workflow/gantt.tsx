/** When each step waited and ran, on one line of time; the steps that decided how long it took stand out. */

import { memo } from "react";

import type { Workflow, WorkflowStep } from "@/api/workflows";
import { StepLink } from "@/components/workflow/step-link";
import { Track } from "@/components/track";
import { classes } from "@/lib/classes";
import { useNow } from "@/lib/now";
import { plural } from "@/lib/numbers";
import { JOB_TONES } from "@/lib/states";
import { stateOf } from "@/lib/steps";
import { duration } from "@/lib/time";
import { criticalPath, spansOf, type StepSpan } from "@/lib/workflow-spans";

const WAIT = "bg-line-strong/45";
const TICKS = [0, 0.25, 0.5, 0.75, 1] as const;
const ROW = "grid grid-cols-[minmax(7rem,14rem)_minmax(0,1fr)_5.5rem] items-center gap-3 px-4";

export function Gantt({ workflow }: { workflow: Workflow }) {
  const now = useNow();
  const spans = spansOf(workflow, now);
  const critical = new Set(criticalPath(workflow.steps, spans));
  const from = new Date(workflow.created_at).getTime();
  const until = Math.max(from + 1, ...spans.map((span) => span?.endedAt ?? 0));
  return (
    <div className="flex flex-col">
      <div className={classes(ROW, "border-b py-2 text-xs text-muted")}>
        <span>Step</span>
        <span aria-hidden className="figures flex justify-between">
          {TICKS.map((tick) => (
            <span key={tick} className={tick === 0.25 || tick === 0.75 ? "max-sm:hidden" : ""}>
              {duration((until - from) * tick)}
            </span>
          ))}
        </span>
        <span className="text-right">Ran</span>
      </div>
      <ol aria-label="Steps in time" className="max-h-[70vh] overflow-y-auto" tabIndex={0}>
        {workflow.steps.map((step) => (
          <Row
            key={step.index}
            workflow={workflow.id}
            step={step}
            span={spans[step.index] ?? null}
            from={from}
            until={until}
            isCritical={critical.has(step.index)}
          />
        ))}
      </ol>
      <p className="flex flex-wrap gap-x-4 gap-y-1 border-t px-4 py-2 text-xs text-muted">
        <span className="flex items-center gap-1.5">
          <span aria-hidden className={classes("h-2 w-4 rounded-full", WAIT)} /> waited, earlier attempts included
        </span>
        <span className="flex items-center gap-1.5">
          <span aria-hidden className="h-2 w-4 rounded-full bg-completed" /> ran
        </span>
        <span className="flex items-center gap-1.5">
          <span aria-hidden className="h-4 w-1 rounded-full bg-accent" /> critical path: what decides how long it takes
          {critical.size > 0 && ` (${plural(critical.size, "step")})`}
        </span>
      </p>
    </div>
  );
}

interface RowProps {
  workflow: string;
  step: WorkflowStep;
  span: StepSpan | null;
  from: number;
  until: number;
  isCritical: boolean;
}

const Row = memo(function Row({ workflow, step, span, from, until, isCritical }: RowProps) {
  const tone = JOB_TONES[stateOf(step)];
  const waited = span === null ? 0 : span.startedAt - span.readyAt;
  const ran = span === null ? null : duration(span.endedAt - span.startedAt);
  return (
    <li
      className={classes(
        ROW,
        "min-h-8 border-b border-l-3 border-b-line/60 py-1 [contain-intrinsic-size:auto_33px] [content-visibility:auto]",
        isCritical ? "border-l-accent bg-accent-soft/40" : "border-l-transparent",
      )}
    >
      <span className="flex min-w-0 items-center gap-2">
        <span aria-hidden title={tone.label} className={classes("size-2 shrink-0 rounded-full", tone.mark)} />
        <span className={classes("min-w-0 truncate", isCritical && "font-medium")}>
          <StepLink workflow={workflow} step={step} />
        </span>
        <span className="sr-only">
          {tone.label}
          {isCritical && ", on the critical path"}
        </span>
      </span>
      <Track
        from={from}
        until={until}
        stretches={
          span === null
            ? []
            : [
                ...(waited > 0
                  ? [
                      {
                        from: span.readyAt,
                        until: span.startedAt,
                        className: WAIT,
                        title: `waited ${duration(waited)}`,
                      },
                    ]
                  : []),
                {
                  from: span.startedAt,
                  until: span.endedAt,
                  className: classes(tone.mark, span.isGuessed && "opacity-60"),
                  title: `${span.isGuessed ? "about " : ""}${ran ?? ""}`,
                },
              ]
        }
      />
      <span className="figures text-right text-xs whitespace-nowrap text-muted">
        {ran !== null && `${span?.isGuessed ? "≈ " : ""}${ran}`}
      </span>
    </li>
  );
});
