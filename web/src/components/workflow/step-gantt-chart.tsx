/** A Gantt chart of the steps of a workflow: waits and attempts, with the critical path highlighted. */

import { Route } from "lucide-react";
import type { ReactNode } from "react";

import type { Workflow } from "@/api/workflows";
import { JobLink } from "@/components/job-links";
import { TimelineTrack, WAIT_CLASS, type TimelineSegment as Part } from "@/components/timeline-track";
import { ToggleButton } from "@/components/toggle-button";
import { StepLink } from "@/components/workflow/step-link";
import { attemptSpans, outcomeTone, type AttemptSpan } from "@/lib/attempt-spans";
import { classNames } from "@/lib/class-names";
import { formatPlural } from "@/lib/format-number";
import { formatDuration } from "@/lib/format-time";
import { JOB_STATE_STYLES, type StateStyle } from "@/lib/job-and-workflow-states";
import { useNow } from "@/lib/server-clock";
import { criticalPath } from "@/lib/workflow-critical-path";
import { stepSpans, type StepSpan } from "@/lib/workflow-step-spans";
import { stepState, undoStatus } from "@/lib/workflow-step-state";

const TICKS = [0, 0.25, 0.5, 0.75, 1] as const;
const ROW =
  "grid grid-cols-[7rem_minmax(0,1fr)_4.5rem] items-center gap-3 px-4 sm:grid-cols-[minmax(7rem,14rem)_minmax(0,1fr)_5.5rem]";

interface StepGanttChartProps {
  workflow: Workflow;
  /** Hides the steps that are not on the critical path. */
  isCriticalOnly: boolean;
  onCriticalOnly: (isOnly: boolean) => void;
}

export function StepGanttChart({ workflow, isCriticalOnly, onCriticalOnly }: StepGanttChartProps) {
  const now = useNow();
  const spans = stepSpans(workflow, now);
  const undos = compensationRows(workflow, now);
  const critical = new Set(criticalPath(workflow.steps, spans));
  const from = new Date(workflow.created_at).getTime();
  const until = Math.max(
    from + 1,
    ...spans.map((span) => span?.endedAt ?? 0),
    ...undos.map(({ attempts }) => attempts.at(-1)?.ranUntil ?? 0),
  );
  const steps = isCriticalOnly ? workflow.steps.filter(({ index }) => critical.has(index)) : workflow.steps;
  return (
    <div className="flex flex-col">
      {(isCriticalOnly || (critical.size > 0 && critical.size < workflow.steps.length)) && (
        <div className="flex border-b px-2 py-1">
          <ToggleButton
            icon={Route}
            label="Critical path only"
            isOn={isCriticalOnly}
            onToggle={() => onCriticalOnly(!isCriticalOnly)}
          />
        </div>
      )}
      <div className={classNames(ROW, "border-b py-2 text-xs text-muted")}>
        <span>Step</span>
        <span aria-hidden className="tabular-nums flex justify-between">
          {TICKS.map((tick) => (
            <span key={tick} className={tick > 0 && tick < 1 ? "max-sm:hidden" : ""}>
              {formatDuration((until - from) * tick)}
            </span>
          ))}
        </span>
        <span className="text-right">Ran</span>
      </div>
      <div className="max-h-[62vh] overflow-y-auto" tabIndex={0} role="group" aria-label="Timeline">
        <ol aria-label="Step timeline">
          {steps.map((step) => {
            const tone = JOB_STATE_STYLES[stepState(step)];
            const span = spans[step.index] ?? null;
            return (
              <Row
                key={step.index}
                label={<StepLink workflow={workflow.id} step={step} />}
                tone={tone}
                parts={span === null ? [] : spanSegments(span, tone)}
                ran={span === null ? null : runTimeLabel(span)}
                attempts={span?.attempts.length ?? 0}
                from={from}
                until={until}
                isCritical={critical.has(step.index)}
              />
            );
          })}
        </ol>
        {undos.length > 0 && (
          <>
            <h2 id="gantt-undos" className="border-b border-b-line/60 bg-sunken px-4 py-1.5 text-xs text-muted">
              Compensations
            </h2>
            <ol aria-labelledby="gantt-undos">
              {undos.map(({ index, name, jobId, tone, attempts }) => (
                <Row
                  key={index}
                  label={<JobLink id={jobId} className="max-w-full truncate">{`undo ${name}`}</JobLink>}
                  tone={tone}
                  parts={attempts.flatMap(attemptSegments)}
                  ran={attempts.length === 0 ? null : formatDuration(totalRunTime(attempts))}
                  attempts={attempts.length}
                  from={from}
                  until={until}
                  isCritical={false}
                />
              ))}
            </ol>
          </>
        )}
      </div>
      <p className="flex flex-wrap gap-x-4 gap-y-1 border-t px-4 py-2 text-xs text-muted">
        <span className="flex items-center gap-1.5">
          <span aria-hidden className={classNames("h-2 w-4 rounded-full", WAIT_CLASS)} /> waited
        </span>
        <span className="flex items-center gap-1.5">
          <span aria-hidden className="h-2 w-4 rounded-full bg-completed forced-color-adjust-none" /> successful attempt
        </span>
        <span className="flex items-center gap-1.5">
          <span aria-hidden className="h-2 w-4 rounded-full bg-failed forced-color-adjust-none" /> failed attempt
        </span>
        <span className="flex items-center gap-1.5">
          <span aria-hidden className="h-4 w-1 rounded-full bg-accent forced-color-adjust-none" /> critical path: the
          steps that determine the duration
          {critical.size > 0 && ` (${formatPlural(critical.size, "step")})`}
        </span>
      </p>
    </div>
  );
}

interface CompensationRow {
  readonly index: number;
  readonly name: string;
  readonly jobId: string;
  readonly tone: StateStyle;
  readonly attempts: readonly AttemptSpan[];
}

/** The requested compensations, in the order of their start. */
function compensationRows({ steps }: Workflow, now: number): readonly CompensationRow[] {
  const rows = steps.flatMap(({ index, name, undo }): CompensationRow[] => {
    const state = undo === null ? null : undoStatus(undo).state;
    if (undo === null || state === null) return [];
    const from = new Date(undo.attempts[0]?.started_at ?? 0).getTime();
    const tone = JOB_STATE_STYLES[undo.status ?? state];
    return [{ index, name, jobId: undo.jobId, tone, attempts: attemptSpans(undo.attempts, from, now) }];
  });
  const start = ({ attempts }: CompensationRow) => attempts[0]?.waitedUntil ?? Infinity;
  // Compensations that have not started come last, in the order in which they will run: latest step first.
  return rows.toSorted((one, other) =>
    start(one) < start(other) ? -1 : start(one) > start(other) ? 1 : other.index - one.index,
  );
}

function attemptSegments({ attempt, waitedFrom, waitedUntil, ranUntil }: AttemptSpan): Part[] {
  const waited = waitSegment(waitedFrom, waitedUntil);
  if (attempt === null) return waited;
  const words = `attempt ${attempt.attempt} ${attempt.outcome}, ${formatDuration(ranUntil - waitedUntil)}`;
  const title = attempt.note ? `${words}: ${attempt.note}` : words;
  return [...waited, { from: waitedUntil, until: ranUntil, className: outcomeTone(attempt.outcome).mark, title }];
}

function waitSegment(from: number, until: number): Part[] {
  return until > from ? [{ from, until, className: WAIT_CLASS, title: `waited ${formatDuration(until - from)}` }] : [];
}

function spanSegments(span: StepSpan, tone: StateStyle): Part[] {
  const { readyAt, startedAt, endedAt, attempts, isEstimated, isOpen } = span;
  const last = attempts.at(-1);
  if (last !== undefined) {
    return [
      ...attempts.flatMap(attemptSegments),
      ...(isOpen && !last.isOpen ? waitSegment(last.ranUntil, endedAt) : []),
    ];
  }
  const title = `${isEstimated ? "about " : ""}${formatDuration(endedAt - startedAt)}`;
  const className = classNames(tone.mark, isEstimated && "opacity-60");
  return [...waitSegment(readyAt, startedAt), { from: startedAt, until: endedAt, className, title }];
}

/** The running time of all attempts. */
function totalRunTime(stretches: readonly AttemptSpan[]): number {
  return stretches.reduce((sum, { waitedUntil, ranUntil }) => sum + ranUntil - waitedUntil, 0);
}

function runTimeLabel({ startedAt, endedAt, attempts, isEstimated }: StepSpan): string {
  if (attempts.length > 0) return formatDuration(totalRunTime(attempts));
  return `${isEstimated ? "≈ " : ""}${formatDuration(endedAt - startedAt)}`;
}

interface RowProps {
  label: ReactNode;
  tone: StateStyle;
  parts: readonly Part[];
  ran: string | null;
  attempts: number;
  from: number;
  until: number;
  isCritical: boolean;
}

function Row({ label, tone, parts, ran, attempts, from, until, isCritical }: RowProps) {
  return (
    <li
      className={classNames(
        ROW,
        "min-h-8 border-b border-l-3 border-b-line/60 py-1 [contain-intrinsic-size:auto_33px] [content-visibility:auto]",
        isCritical ? "border-l-accent bg-accent-soft/40" : "border-l-transparent",
      )}
    >
      <span className="flex min-w-0 items-center gap-2">
        <span aria-hidden title={tone.label} className={classNames("size-2 shrink-0 rounded-full", tone.mark)} />
        <span className={classNames("min-w-0 truncate", isCritical && "font-medium")}>{label}</span>
        <span className="sr-only">
          {tone.label}
          {isCritical && ", on the critical path"}
        </span>
      </span>
      <TimelineTrack from={from} until={until} segments={parts} />
      <span className="tabular-nums text-right text-xs whitespace-nowrap text-muted">
        {ran}
        {attempts > 1 && <span className="block">{formatPlural(attempts, "attempt")}</span>}
      </span>
    </li>
  );
}
