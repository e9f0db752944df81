/** The nodes and edges of the workflow graph: cards of steps and of groups of similar steps, and lines. */

import { BaseEdge, Handle, Position, type Edge, type EdgeProps, type Node, type NodeProps } from "@xyflow/react";
import { ChevronDown, ChevronRight, Undo2 } from "lucide-react";
import { createContext, memo, useContext, type CSSProperties, type ReactNode } from "react";

import type { Workflow, WorkflowStep } from "@/api/workflows";
import { JobLink } from "@/components/job-links";
import { Duration } from "@/components/relative-time-and-duration";
import { StepLink } from "@/components/workflow/step-link";
import { classNames } from "@/lib/class-names";
import { formatCount } from "@/lib/format-number";
import { JOB_STATE_STYLES, type JobState } from "@/lib/job-and-workflow-states";
import type { Card } from "@/lib/workflow-graph-cards";
import { FRAME_HEAD, innerBoxes, cardSize, type GraphLayout } from "@/lib/workflow-graph-layout";
import type { Box } from "@/lib/workflow-graph-viewport";
import { countByState, mostSevereState, itemProgress, stepState, undoStatus } from "@/lib/workflow-step-state";

interface CardData extends Record<string, unknown> {
  /** Indexes of the steps it shows. */
  readonly places: readonly number[];
  readonly group: number | null;
  readonly total: number;
  /** An expanded group: its steps have their own cards. */
  readonly isFrame: boolean;
}

export type CardNode = Node<CardData, "step" | "like">;
export type CardEdge = Edge<{ path: string }, "line">;

export interface GraphElements {
  readonly nodes: CardNode[];
  readonly edges: CardEdge[];
  readonly boxes: ReadonlyMap<string, Box>;
}

/** Zoomed out, a card shows only its name, in larger letters; further out it is a coloured box, which is cheap to draw. */
export type ZoomLevel = "near" | "middle" | "far";

interface GraphState {
  /** The current steps. A change renders the cards again, without a new layout. */
  readonly workflow: Workflow;
  readonly distance: ZoomLevel;
  readonly onToggle: (group: number) => void;
}

export const GraphContext = createContext<GraphState | null>(null);

export function buildGraph(cards: readonly Card[], layout: GraphLayout): GraphElements {
  const boxes = new Map<string, Box>();
  const nodes = cards.flatMap((card, at) => {
    const place = layout.positions[at] ?? { x: 0, y: 0 };
    const node = (key: string, type: "step" | "like", box: Box, data: CardData): CardNode => {
      boxes.set(key, box);
      const size = { width: box.width, height: box.height };
      return { id: key, type, position: { x: box.x, y: box.y }, data, ...size, measured: size };
    };
    const { key, group, steps, total, isOpen } = card;
    const box = { ...place, ...cardSize(card) };
    if (group === null) return [node(key, "step", box, { places: steps, group, total, isFrame: false })];
    if (!isOpen) return [node(key, "like", box, { places: steps, group, total, isFrame: false })];
    return [
      node(key, "like", box, { places: steps, group, total, isFrame: true }),
      ...innerBoxes(card).map((inside, nth) =>
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
  distance: ZoomLevel;
}

/** Rendered again only if its own step has changed. */
const StepCard = memo(function StepCard({ workflow, step, distance }: StepCardProps) {
  const state = stepState(step);
  const tone = JOB_STATE_STYLES[state];
  const title = distance === "near" ? undefined : `${step.name}: ${tone.label}`;
  return (
    <Frame state={state} distance={distance} hasFailed={hasFailure(step)} title={title}>
      {distance === "middle" && (
        <StepLink workflow={workflow} step={step} className={classNames(FACE, "h-full hover:bg-surface")}>
          <span className={classNames("truncate", MIDDLE_NAME)}>{step.name}</span>
          <span className="sr-only">{tone.label}</span>
        </StepLink>
      )}
      {distance === "near" && (
        <>
          <StepLink workflow={workflow} step={step} className={classNames(FACE, "h-[60px] hover:bg-sunken")}>
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

/** Clickable parts of a card; dragging them does not pan the graph. */
const FACE = "nopan flex min-h-0 flex-col justify-center gap-0.5 px-2.5 outline-offset-[-2px]";
const MIDDLE_NAME = "text-[28px] leading-8 font-medium";

/** States that need no action: muted when zoomed out. */
const MUTED_STATES: ReadonlySet<JobState> = new Set(["COMPLETED", "BLOCKED", "SCHEDULED", "CANCELLED"]);

interface FrameProps {
  /** The colour of the left edge; null for an expanded group, whose steps have their own. */
  state: JobState | null;
  distance: ZoomLevel;
  hasFailed: boolean;
  title?: string;
  children: ReactNode;
}

/** The base of a card. Lines end at its sides. */
function Frame({ state, distance, hasFailed, title, children }: FrameProps) {
  return (
    <div
      title={title}
      className={classNames(
        // React Flow disables pointer events on nodes that can be neither dragged nor selected.
        "pointer-events-auto flex h-full flex-col overflow-hidden rounded-md border text-left text-text",
        state === null ? "bg-sunken/60" : "border-l-4 bg-surface",
        hasFailed && "border-failed",
      )}
      style={state === null ? undefined : cardColors(state, distance)}
    >
      <Handle type="target" position={Position.Left} className="invisible" />
      {children}
      <Handle type="source" position={Position.Right} className="invisible" />
    </div>
  );
}

function cardColors(state: JobState, distance: ZoomLevel): CSSProperties {
  const { variable } = JOB_STATE_STYLES[state];
  const color = `var(${variable})`;
  if (distance === "near") return { borderLeftColor: color };
  if (distance === "middle") {
    return { borderLeftColor: color, borderLeftWidth: 14, backgroundColor: `var(${variable}-soft)` };
  }
  return { backgroundColor: MUTED_STATES.has(state) ? `color-mix(in srgb, ${color} 40%, var(--surface))` : color };
}

function StepLine({ step, label, badge }: { step: WorkflowStep; label: string; badge: string }) {
  const items = itemProgress(step);
  return (
    <span className="tabular-nums flex min-w-0 items-center gap-1.5 text-xs text-muted">
      <span className={classNames("rounded px-1", badge)}>{label}</span>
      <span className="truncate">
        {items ??
          (step.started_at !== null && (step.ended_at !== null || step.status === "PROCESSING") ? (
            <Duration from={step.started_at} until={step.ended_at} />
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
  const { label, state } = undoStatus(undo);
  const content = (
    <span className="flex items-center gap-1">
      <Undo2 aria-hidden className="size-3" />
      {label}
    </span>
  );
  if (state === null) return <div className={classNames(UNDO_LINE, "text-muted")}>{content}</div>;
  return (
    <JobLink id={undo.jobId} className={classNames(UNDO_LINE, "nopan", JOB_STATE_STYLES[state].badge)}>
      {content}
      <span className="sr-only">: {step.name}</span>
    </JobLink>
  );
}

function GroupNode({ data }: NodeProps<CardNode>) {
  const now = useContext(GraphContext);
  const { group } = data;
  if (!now || group === null) return null;
  const steps = data.places.flatMap((place) => now.workflow.steps[place] ?? []);
  const onToggle = () => now.onToggle(group);
  // One component for both states, so that the button keeps the focus.
  return (
    <GroupCard steps={steps} total={data.total} isOpen={data.isFrame} distance={now.distance} onToggle={onToggle} />
  );
}

interface GroupProps {
  /** Number of shown steps, and of all steps. */
  steps: readonly WorkflowStep[];
  total: number;
  isOpen: boolean;
  distance: ZoomLevel;
  onToggle: () => void;
}

function GroupCard({ steps, total, isOpen, distance, onToggle }: GroupProps) {
  const [first] = steps;
  const Chevron = isOpen ? ChevronDown : ChevronRight;
  return (
    <Frame state={isOpen ? null : mostSevereState(steps)} distance={distance} hasFailed={steps.some(hasFailure)}>
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={onToggle}
        className={classNames(
          FACE,
          "text-left hover:bg-sunken",
          isOpen ? "shrink-0" : "flex-1",
          distance === "far" && "opacity-0",
        )}
        style={isOpen ? { height: FRAME_HEAD } : undefined}
      >
        <span
          className={classNames(
            "flex w-full min-w-0 items-center gap-1",
            distance === "near" || isOpen ? "text-[13px] font-medium" : MIDDLE_NAME,
          )}
          title={first?.type}
        >
          <Chevron aria-hidden className="-ml-1 size-[1em] shrink-0 text-muted" />
          <span className="min-w-0 truncate">{first?.type}</span>
          <span className="tabular-nums shrink-0"> × {formatCount(total)}</span>
          {steps.length < total && (
            <span className="tabular-nums shrink-0 font-normal text-muted">({formatCount(steps.length)} shown)</span>
          )}
        </span>
        {!isOpen && (
          <span
            className={classNames(
              "tabular-nums flex max-h-[38px] w-full flex-wrap gap-1 overflow-hidden text-xs",
              distance !== "near" && "sr-only",
            )}
          >
            {countByState(steps).map(([state, many]) => (
              <span key={state} className={classNames("rounded px-1 whitespace-nowrap", JOB_STATE_STYLES[state].badge)}>
                {formatCount(many)} {JOB_STATE_STYLES[state].label}
              </span>
            ))}
          </span>
        )}
      </button>
      {!isOpen && distance === "near" && first?.undo && <GroupUndoLine steps={steps} />}
    </Frame>
  );
}

function hasFailure({ outcome, undo }: WorkflowStep): boolean {
  return outcome === "failed" || undo?.state === "failed";
}

function GroupUndoLine({ steps }: { steps: readonly WorkflowStep[] }) {
  const many = new Map<string, number>();
  for (const { undo } of steps) if (undo) many.set(undoStatus(undo).label, (many.get(undoStatus(undo).label) ?? 0) + 1);
  const words = [...many].map(([label, times]) => `${formatCount(times)} ${label}`).join(", ");
  const hasFailed = steps.some(({ undo }) => undo?.state === "failed");
  return (
    <div className={classNames(UNDO_LINE, hasFailed ? JOB_STATE_STYLES.FAILED.badge : "text-muted")}>
      <Undo2 aria-hidden className="size-3 shrink-0" />
      <span className="truncate" title={words}>
        {words}
      </span>
    </div>
  );
}

const ConnectionLine = memo(function Line({ data, id }: EdgeProps<CardEdge>) {
  return <BaseEdge id={id} path={data?.path ?? ""} style={{ stroke: "var(--line-strong)", strokeWidth: 1.5 }} />;
});

export const NODE_TYPES = { step: StepNode, like: GroupNode };
export const EDGE_TYPES = { line: ConnectionLine };
