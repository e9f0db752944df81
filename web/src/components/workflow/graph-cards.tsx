/** What stands in the graph of a workflow: a card for a step, one for many that are alike, and the lines between. */

import { BaseEdge, Handle, Position, type Edge, type EdgeProps, type Node, type NodeProps } from "@xyflow/react";
import { ChevronDown, ChevronRight, Undo2 } from "lucide-react";
import { createContext, memo, useContext, type CSSProperties, type ReactNode } from "react";

import type { Workflow, WorkflowStep } from "@/api/workflows";
import { JobLink } from "@/components/links";
import { Span } from "@/components/moment";
import { StepLink } from "@/components/workflow/step-link";
import { classes } from "@/lib/classes";
import type { Card } from "@/lib/flow-cards";
import { FRAME_HEAD, insideOf, sizeOf, type FlowLayout } from "@/lib/flow-layout";
import type { Box } from "@/lib/flow-view";
import { count } from "@/lib/numbers";
import { JOB_TONES, type JobState } from "@/lib/states";
import { byState, gravest, itemsOf, stateOf, undoWords } from "@/lib/steps";

interface CardData extends Record<string, unknown> {
  /** Steps that it shows, by place. */
  readonly places: readonly number[];
  readonly group: number | null;
  readonly total: number;
  /** An open group: its steps have cards of their own. */
  readonly isFrame: boolean;
}

export type CardNode = Node<CardData, "step" | "like">;
export type CardEdge = Edge<{ path: string }, "line">;

export interface Parts {
  readonly nodes: CardNode[];
  readonly edges: CardEdge[];
  readonly boxes: ReadonlyMap<string, Box>;
}

/** From a distance a card says less, in larger letters; from afar it is a patch of its colour, and costs little. */
export type Distance = "near" | "middle" | "far";

interface GraphNow {
  /** How the steps stand now: cards are drawn anew by this, and never laid out again. */
  readonly workflow: Workflow;
  readonly distance: Distance;
  readonly onToggle: (group: number) => void;
}

export const GraphContext = createContext<GraphNow | null>(null);

export function partsOf(cards: readonly Card[], layout: FlowLayout): Parts {
  const boxes = new Map<string, Box>();
  const nodes = cards.flatMap((card, at) => {
    const place = layout.places[at] ?? { x: 0, y: 0 };
    const node = (key: string, type: "step" | "like", box: Box, data: CardData): CardNode => {
      boxes.set(key, box);
      const size = { width: box.width, height: box.height };
      return { id: key, type, position: { x: box.x, y: box.y }, data, ...size, measured: size };
    };
    const { key, group, steps, total, isOpen } = card;
    const box = { ...place, ...sizeOf(card) };
    if (group === null) return [node(key, "step", box, { places: steps, group, total, isFrame: false })];
    if (!isOpen) return [node(key, "like", box, { places: steps, group, total, isFrame: false })];
    return [
      node(key, "like", box, { places: steps, group, total, isFrame: true }),
      ...insideOf(card).map((inside, nth) =>
        node(
          `${key}/${steps[nth]}`,
          "step",
          { ...inside, x: place.x + inside.x, y: place.y + inside.y },
          { places: steps.slice(nth, nth + 1), group: null, total: 1, isFrame: false },
        ),
      ),
    ];
  });
  const edges = cards.flatMap((card, at) =>
    card.after.map((other): CardEdge => {
      const path = layout.paths[`${other}-${at}`] ?? "";
      const source = cards[other]?.key ?? "";
      return { id: `${source}-${card.key}`, type: "line", source, target: card.key, data: { path } };
    }),
  );
  return { nodes, edges, boxes };
}

function StepNode({ data }: NodeProps<CardNode>) {
  const now = useContext(GraphContext);
  const step = now?.workflow.steps[data.places[0] ?? -1];
  return now && step ? <StepCard workflow={now.workflow.id} step={step} distance={now.distance} /> : null;
}

interface StepCardProps {
  workflow: string;
  step: WorkflowStep;
  distance: Distance;
}

/** Drawn again only when its own step has changed. */
const StepCard = memo(function StepCard({ workflow, step, distance }: StepCardProps) {
  const state = stateOf(step);
  const tone = JOB_TONES[state];
  const title = distance === "near" ? undefined : `${step.name}: ${tone.label}`;
  return (
    <Frame state={state} distance={distance} hasFailed={hasTrouble(step)} title={title}>
      {distance === "middle" && (
        <StepLink workflow={workflow} step={step} className={classes(FACE, "h-full hover:bg-surface")}>
          <span className={classes("truncate", MIDDLE_NAME)}>{step.name}</span>
          <span className="sr-only">{tone.label}</span>
        </StepLink>
      )}
      {distance === "near" && (
        <>
          <StepLink workflow={workflow} step={step} className={classes(FACE, "h-[60px] hover:bg-sunken")}>
            <span className="truncate text-[13px] font-medium" title={step.name}>
              {step.name}
            </span>
            <StepLine step={step} label={tone.label} badge={tone.badge} />
          </StepLink>
          {step.undo !== null && <UndoLine step={step} undo={step.undo} />}
        </>
      )}
    </Frame>
  );
});

/** What can be pressed of a card: the graph is not moved with it. */
const FACE = "nopan flex min-h-0 flex-col justify-center gap-0.5 px-2.5 outline-offset-[-2px]";
const MIDDLE_NAME = "text-[28px] leading-8 font-medium";

/** States that nobody has to look at: from afar they stand back. */
const QUIET: ReadonlySet<JobState> = new Set(["COMPLETED", "BLOCKED", "SCHEDULED", "CANCELLED"]);

interface FrameProps {
  /** The colour on its left; null for an open group, which has one card for each of its steps. */
  state: JobState | null;
  distance: Distance;
  hasFailed: boolean;
  title?: string;
  children: ReactNode;
}

/** What a card is drawn on. Lines end at its sides. */
function Frame({ state, distance, hasFailed, title, children }: FrameProps) {
  return (
    <div
      title={title}
      className={classes(
        // The graph would let no click through to a card that cannot be dragged or chosen.
        "pointer-events-auto flex h-full flex-col overflow-hidden rounded-md border text-left text-text",
        state === null ? "bg-sunken/60" : "border-l-4 bg-surface",
        hasFailed && "border-failed",
      )}
      style={state === null ? undefined : colorsOf(state, distance)}
    >
      <Handle type="target" position={Position.Left} className="invisible" />
      {children}
      <Handle type="source" position={Position.Right} className="invisible" />
    </div>
  );
}

function colorsOf(state: JobState, distance: Distance): CSSProperties {
  const { variable } = JOB_TONES[state];
  const color = `var(${variable})`;
  if (distance === "near") return { borderLeftColor: color };
  if (distance === "middle") {
    return { borderLeftColor: color, borderLeftWidth: 14, backgroundColor: `var(${variable}-soft)` };
  }
  return { backgroundColor: QUIET.has(state) ? `color-mix(in srgb, ${color} 40%, var(--surface))` : color };
}

function StepLine({ step, label, badge }: { step: WorkflowStep; label: string; badge: string }) {
  const items = itemsOf(step);
  return (
    <span className="figures flex min-w-0 items-center gap-1.5 text-xs text-muted">
      <span className={classes("rounded px-1", badge)}>{label}</span>
      <span className="truncate">
        {items ??
          (step.started_at !== null && (step.ended_at !== null || step.status === "PROCESSING") ? (
            <Span from={step.started_at} until={step.ended_at} />
          ) : (
            step.type
          ))}
        {step.attempts > 1 && `, ${step.attempts} attempts`}
      </span>
    </span>
  );
}

const UNDO_LINE = "flex h-[26px] shrink-0 items-center gap-1 border-t px-2.5 text-xs";

function UndoLine({ step, undo }: { step: WorkflowStep; undo: NonNullable<WorkflowStep["undo"]> }) {
  const { words, state } = undoWords(undo);
  const content = (
    <span className="flex items-center gap-1">
      <Undo2 aria-hidden className="size-3" />
      {words}
    </span>
  );
  if (state === null) return <div className={classes(UNDO_LINE, "text-muted")}>{content}</div>;
  return (
    <JobLink id={undo.jobId} className={classes(UNDO_LINE, "nopan", JOB_TONES[state].badge)}>
      {content}
      <span className="sr-only">: {step.name}</span>
    </JobLink>
  );
}

function LikeNode({ data }: NodeProps<CardNode>) {
  const now = useContext(GraphContext);
  const { group } = data;
  if (!now || group === null) return null;
  const steps = data.places.flatMap((place) => now.workflow.steps[place] ?? []);
  const onToggle = () => now.onToggle(group);
  // One component for both, so that the button is the same one and keeps the focus.
  return <Group steps={steps} total={data.total} isOpen={data.isFrame} distance={now.distance} onToggle={onToggle} />;
}

interface GroupProps {
  /** Those that are shown, of so many. */
  steps: readonly WorkflowStep[];
  total: number;
  isOpen: boolean;
  distance: Distance;
  onToggle: () => void;
}

function Group({ steps, total, isOpen, distance, onToggle }: GroupProps) {
  const [first] = steps;
  const Chevron = isOpen ? ChevronDown : ChevronRight;
  return (
    <Frame state={isOpen ? null : gravest(steps)} distance={distance} hasFailed={steps.some(hasTrouble)}>
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={onToggle}
        className={classes(
          FACE,
          "text-left hover:bg-sunken",
          isOpen ? "shrink-0" : "flex-1",
          distance === "far" && "opacity-0",
        )}
        style={isOpen ? { height: FRAME_HEAD } : undefined}
      >
        <span
          className={classes(
            "flex w-full min-w-0 items-center gap-1",
            distance === "near" || isOpen ? "text-[13px] font-medium" : MIDDLE_NAME,
          )}
          title={first?.type}
        >
          <Chevron aria-hidden className="-ml-1 size-[1em] shrink-0 text-muted" />
          <span className="min-w-0 truncate">{first?.type}</span>
          <span className="figures shrink-0"> × {count(total)}</span>
          {steps.length < total && (
            <span className="figures shrink-0 font-normal text-muted">({count(steps.length)} shown)</span>
          )}
        </span>
        {!isOpen && (
          <span
            className={classes(
              "figures flex max-h-[38px] w-full flex-wrap gap-1 overflow-hidden text-xs",
              distance !== "near" && "sr-only",
            )}
          >
            {byState(steps).map(([state, many]) => (
              <span key={state} className={classes("rounded px-1 whitespace-nowrap", JOB_TONES[state].badge)}>
                {count(many)} {JOB_TONES[state].label}
              </span>
            ))}
          </span>
        )}
      </button>
      {!isOpen && distance === "near" && first?.undo && <GroupUndoLine steps={steps} />}
    </Frame>
  );
}

function hasTrouble({ outcome, undo }: WorkflowStep): boolean {
  return outcome === "failed" || undo?.state === "failed";
}

function GroupUndoLine({ steps }: { steps: readonly WorkflowStep[] }) {
  const many = new Map<string, number>();
  for (const { undo } of steps) if (undo) many.set(undoWords(undo).words, (many.get(undoWords(undo).words) ?? 0) + 1);
  const words = [...many].map(([said, times]) => `${count(times)} ${said}`).join(", ");
  const hasFailed = steps.some(({ undo }) => undo?.state === "failed");
  return (
    <div className={classes(UNDO_LINE, hasFailed ? JOB_TONES.FAILED.badge : "text-muted")}>
      <Undo2 aria-hidden className="size-3 shrink-0" />
      <span className="truncate" title={words}>
        {words}
      </span>
    </div>
  );
}

const Line = memo(function Line({ data, id }: EdgeProps<CardEdge>) {
  return <BaseEdge id={id} path={data?.path ?? ""} style={{ stroke: "var(--line-strong)", strokeWidth: 1.5 }} />;
});

export const NODE_TYPES = { step: StepNode, like: LikeNode };
export const EDGE_TYPES = { line: Line };
