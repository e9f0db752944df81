/** When each step waited and ran, attempt by attempt, on one line of time; what decided how long it took stands out. */

import { Route } from "lucide-react";
import type { ReactNode } from "react";

import type { Workflow } from "@/api/workflows";
import { JobLink } from "@/components/links";
import { Toggle } from "@/components/toggle";
import { Track, WAIT, type Stretch as Part } from "@/components/track";
import { StepLink } from "@/components/workflow/step-link";
import { stretchesOf, toneOf, type Stretch } from "@/lib/attempts";
import { classes } from "@/lib/classes";
import { useNow } from "@/lib/now";
import { plural } from "@/lib/numbers";
import { JOB_TONES, type Tone } from "@/lib/states";
import { stateOf, undoWords } from "@/lib/steps";
import { duration } from "@/lib/time";
import { criticalPath, spansOf, type StepSpan } from "@/lib/workflow-spans";

const TICKS = [0, 0.25, 0.5, 0.75, 1] as const;
const ROW =
  "grid grid-cols-[7rem_minmax(0,1fr)_4.5rem] items-center gap-3 px-4 sm:grid-cols-[minmax(7rem,14rem)_minmax(0,1fr)_5.5rem]";

interface GanttProps {
  workflow: Workflow;
  /** Steps that are not on the critical path are left out. */
  isCriticalOnly: boolean;
  onCriticalOnly: (isOnly: boolean) => void;
}

export function Gantt({ workflow, isCriticalOnly, onCriticalOnly }: GanttProps) {
  const now = useNow();
  const spans = spansOf(workflow, now);
  const undos = undosOf(workflow, now);
  const critical = new Set(criticalPath(workflow.steps, spans));
  const from = new Date(workflow.created_at).getTime();
  const until = Math.max(
    from + 1,
    ...spans.map((span) => span?.endedAt ?? 0),
    ...undos.map(({ stretches }) => stretches.at(-1)?.ranUntil ?? 0),
  );
  const steps = isCriticalOnly ? workflow.steps.filter(({ index }) => critical.has(index)) : workflow.steps;
  return (
    <div className="flex flex-col">
      {(isCriticalOnly || (critical.size > 0 && critical.size < workflow.steps.length)) && (
        <div className="flex border-b px-2 py-1">
          <Toggle
            icon={Route}
            label="Critical path only"
            isOn={isCriticalOnly}
            onToggle={() => onCriticalOnly(!isCriticalOnly)}
          />
        </div>
      )}
      <div className={classes(ROW, "border-b py-2 text-xs text-muted")}>
        <span>Step</span>
        <span aria-hidden className="figures flex justify-between">
          {TICKS.map((tick) => (
            <span key={tick} className={tick > 0 && tick < 1 ? "max-sm:hidden" : ""}>
              {duration((until - from) * tick)}
            </span>
          ))}
        </span>
        <span className="text-right">Ran</span>
      </div>
      <div className="max-h-[62vh] overflow-y-auto" tabIndex={0} role="group" aria-label="Timeline">
        <ol aria-label="Steps in time">
          {steps.map((step) => {
            const tone = JOB_TONES[stateOf(step)];
            const span = spans[step.index] ?? null;
            return (
              <Row
                key={step.index}
                label={<StepLink workflow={workflow.id} step={step} />}
                tone={tone}
                parts={span === null ? [] : partsOf(span, tone)}
                ran={span === null ? null : ranFor(span)}
                attempts={span?.stretches.length ?? 0}
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
              {undos.map(({ index, name, jobId, tone, stretches }) => (
                <Row
                  key={index}
                  label={<JobLink id={jobId} className="max-w-full truncate">{`undo ${name}`}</JobLink>}
                  tone={tone}
                  parts={stretches.flatMap(attemptParts)}
                  ran={stretches.length === 0 ? null : duration(sumOf(stretches))}
                  attempts={stretches.length}
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
          <span aria-hidden className={classes("h-2 w-4 rounded-full", WAIT)} /> waited
        </span>
        <span className="flex items-center gap-1.5">
          <span aria-hidden className="h-2 w-4 rounded-full bg-completed forced-color-adjust-none" /> an attempt that
          succeeded
        </span>
        <span className="flex items-center gap-1.5">
          <span aria-hidden className="h-2 w-4 rounded-full bg-failed forced-color-adjust-none" /> one that failed
        </span>
        <span className="flex items-center gap-1.5">
          <span aria-hidden className="h-4 w-1 rounded-full bg-accent forced-color-adjust-none" /> critical path: what
          decides how long it takes
          {critical.size > 0 && ` (${plural(critical.size, "step")})`}
        </span>
      </p>
    </div>
  );
}

interface UndoRow {
  readonly index: number;
  readonly name: string;
  readonly jobId: string;
  readonly tone: Tone;
  readonly stretches: readonly Stretch[];
}

/** The compensations that were wanted, in the order in which they came. */
function undosOf({ steps }: Workflow, now: number): readonly UndoRow[] {
  const rows = steps.flatMap(({ index, name, undo }): UndoRow[] => {
    const state = undo === null ? null : undoWords(undo).state;
    if (undo === null || state === null) return [];
    const from = new Date(undo.attempts[0]?.started_at ?? 0).getTime();
    const tone = JOB_TONES[undo.status ?? state];
    return [{ index, name, jobId: undo.jobId, tone, stretches: stretchesOf(undo.attempts, from, now) }];
  });
  const start = ({ stretches }: UndoRow) => stretches[0]?.waitedUntil ?? Infinity;
  // Those that have not begun come last, in the order that they will: of the last steps first.
  return rows.toSorted((one, other) =>
    start(one) < start(other) ? -1 : start(one) > start(other) ? 1 : other.index - one.index,
  );
}

function attemptParts({ attempt, waitedFrom, waitedUntil, ranUntil }: Stretch): Part[] {
  const waited = waitPart(waitedFrom, waitedUntil);
  if (attempt === null) return waited;
  const words = `attempt ${attempt.attempt} ${attempt.outcome}, ${duration(ranUntil - waitedUntil)}`;
  const title = attempt.note ? `${words}: ${attempt.note}` : words;
  return [...waited, { from: waitedUntil, until: ranUntil, className: toneOf(attempt.outcome).mark, title }];
}

function waitPart(from: number, until: number): Part[] {
  return until > from ? [{ from, until, className: WAIT, title: `waited ${duration(until - from)}` }] : [];
}

function partsOf(span: StepSpan, tone: Tone): Part[] {
  const { readyAt, startedAt, endedAt, stretches, isGuessed, isOpen } = span;
  const last = stretches.at(-1);
  if (last !== undefined) {
    return [...stretches.flatMap(attemptParts), ...(isOpen && !last.isOpen ? waitPart(last.ranUntil, endedAt) : [])];
  }
  const title = `${isGuessed ? "about " : ""}${duration(endedAt - startedAt)}`;
  const className = classes(tone.mark, isGuessed && "opacity-60");
  return [...waitPart(readyAt, startedAt), { from: startedAt, until: endedAt, className, title }];
}

/** All attempts together. */
function sumOf(stretches: readonly Stretch[]): number {
  return stretches.reduce((sum, { waitedUntil, ranUntil }) => sum + ranUntil - waitedUntil, 0);
}

function ranFor({ startedAt, endedAt, stretches, isGuessed }: StepSpan): string {
  if (stretches.length > 0) return duration(sumOf(stretches));
  return `${isGuessed ? "≈ " : ""}${duration(endedAt - startedAt)}`;
}

interface RowProps {
  label: ReactNode;
  tone: Tone;
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
      className={classes(
        ROW,
        "min-h-8 border-b border-l-3 border-b-line/60 py-1 [contain-intrinsic-size:auto_33px] [content-visibility:auto]",
        isCritical ? "border-l-accent bg-accent-soft/40" : "border-l-transparent",
      )}
    >
      <span className="flex min-w-0 items-center gap-2">
        <span aria-hidden title={tone.label} className={classes("size-2 shrink-0 rounded-full", tone.mark)} />
        <span className={classes("min-w-0 truncate", isCritical && "font-medium")}>{label}</span>
        <span className="sr-only">
          {tone.label}
          {isCritical && ", on the critical path"}
        </span>
      </span>
      <Track from={from} until={until} stretches={parts} />
      <span className="figures text-right text-xs whitespace-nowrap text-muted">
        {ran}
        {attempts > 1 && <span className="block">{plural(attempts, "attempt")}</span>}
      </span>
    </li>
  );
}
