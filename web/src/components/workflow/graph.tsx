/** The graph of a workflow. Steps keep their places while their states change; the view stays where the reader put it. */

import {
  BaseEdge,
  Controls,
  Handle,
  MiniMap,
  Position,
  ReactFlow,
  ReactFlowProvider,
  type Edge,
  type EdgeProps,
  type Node,
  type NodeProps,
} from "@xyflow/react";
import "@xyflow/react/dist/base.css";
import { Undo2 } from "lucide-react";
import { createContext, memo, useContext, useEffect, useMemo, useState } from "react";

import type { Workflow, WorkflowStep } from "@/api/workflows";
import { JobLink } from "@/components/links";
import { Loading } from "@/components/looks";
import { Span } from "@/components/moment";
import { StepLink } from "@/components/workflow/step-link";
import { classes } from "@/lib/classes";
import { heightOf, layoutOf, NODE_WIDTH, type FlowLayout, type FlowShape } from "@/lib/flow-layout";
import { plural } from "@/lib/numbers";
import { JOB_TONES } from "@/lib/states";
import { itemsOf, stateOf, undoWords } from "@/lib/steps";

/** Larger graphs are laid out beside the page. */
const IN_WORKER_ABOVE = 200;

type StepNode = Node<{ place: number }, "step">;
type StepEdge = Edge<{ path: string }, "step">;

/** How the steps stand now: nodes are drawn anew by this, and never laid out again. */
const WorkflowContext = createContext<Workflow | null>(null);

export default function Graph({ workflow }: { workflow: Workflow }) {
  const shape = useShape(workflow);
  const layout = useLayout(shape);
  const parts = useMemo(() => (layout === null ? null : partsOf(shape, layout)), [shape, layout]);
  if (parts === null) {
    return (
      <div className="h-[65vh]">
        <p className="px-4 pt-4 text-muted">Placing {plural(workflow.steps.length, "step")}…</p>
        <Loading lines={6} />
      </div>
    );
  }
  return (
    <WorkflowContext value={workflow}>
      <div className="h-[65vh] min-h-80" role="group" aria-label="Graph of the steps; the same is in the list of steps">
        <ReactFlowProvider>
          <ReactFlow<StepNode, StepEdge>
            nodes={parts.nodes}
            edges={parts.edges}
            nodeTypes={NODE_TYPES}
            edgeTypes={EDGE_TYPES}
            fitView
            fitViewOptions={{ padding: 0.1, maxZoom: 1 }}
            minZoom={0.02}
            maxZoom={1.5}
            nodesDraggable={false}
            nodesConnectable={false}
            nodesFocusable={false}
            edgesFocusable={false}
            elementsSelectable={false}
            onlyRenderVisibleElements={shape.steps.length > IN_WORKER_ABOVE}
            proOptions={{ hideAttribution: true }}
          >
            <Controls showInteractive={false} />
            <MiniMap<StepNode>
              pannable
              zoomable
              className="max-md:hidden"
              ariaLabel="Small map of the graph"
              nodeColor={(node) => {
                const step = workflow.steps[node.data.place];
                return step ? `var(${JOB_TONES[stateOf(step)].variable})` : "var(--line)";
              }}
              bgColor="var(--sunken)"
              maskColor="color-mix(in srgb, var(--bg) 70%, transparent)"
              nodeBorderRadius={8}
            />
          </ReactFlow>
        </ReactFlowProvider>
      </div>
    </WorkflowContext>
  );
}

/** What the layout depends on: it stays the same object while only states change. */
function useShape(workflow: Workflow): FlowShape {
  const text = JSON.stringify({
    steps: workflow.steps.map(({ after, undo }) => ({ hasUndo: undo !== null, after })),
  });
  return useMemo(() => JSON.parse(text) as FlowShape, [text]);
}

/** Null until a large graph has been laid out. */
function useLayout(shape: FlowShape): FlowLayout | null {
  const isLarge = shape.steps.length > IN_WORKER_ABOVE;
  const [placed, setPlaced] = useState<{ shape: FlowShape; layout: FlowLayout } | null>(null);
  const quick = useMemo(() => (isLarge ? null : layoutOf(shape)), [shape, isLarge]);
  useEffect(() => {
    if (!isLarge) return;
    const worker = new Worker(new URL("../../lib/flow-layout.worker.ts", import.meta.url), { type: "module" });
    worker.onmessage = ({ data }: MessageEvent<FlowLayout>) => setPlaced({ shape, layout: data });
    worker.postMessage(shape);
    return () => worker.terminate();
  }, [shape, isLarge]);
  return quick ?? (placed?.shape === shape ? placed.layout : null);
}

function partsOf({ steps }: FlowShape, layout: FlowLayout): { nodes: StepNode[]; edges: StepEdge[] } {
  const nodes = steps.map((step, place): StepNode => {
    const size = { width: NODE_WIDTH, height: heightOf(step) };
    const position = layout.places[place] ?? { x: 0, y: 0 };
    return { id: String(place), type: "step", position, data: { place }, ...size, measured: size };
  });
  const edges = steps.flatMap((step, place) =>
    step.after.map((other): StepEdge => {
      const id = `${other}-${place}`;
      const path = layout.paths[id] ?? "";
      return { id, type: "step", source: String(other), target: String(place), data: { path } };
    }),
  );
  return { nodes, edges };
}

const StepCard = memo(function StepCard({ data }: NodeProps<StepNode>) {
  const workflow = useContext(WorkflowContext);
  const step = workflow?.steps[data.place];
  if (!workflow || !step) return null;
  const tone = JOB_TONES[stateOf(step)];
  return (
    <div
      className={classes(
        "flex h-full flex-col overflow-hidden rounded-md border border-l-4 bg-surface text-left text-text",
        step.outcome === "failed" && "border-failed",
      )}
      style={{ borderLeftColor: `var(${tone.variable})` }}
    >
      <Handle type="target" position={Position.Left} className="invisible" />
      <StepLink
        workflow={workflow.id}
        step={step}
        className="nopan flex h-[60px] min-h-0 flex-col justify-center gap-0.5 px-2.5 hover:bg-sunken"
      >
        <span className="truncate text-[13px] font-medium" title={step.name}>
          {step.name}
        </span>
        <StepLine step={step} label={tone.label} badge={tone.badge} />
      </StepLink>
      {step.undo !== null && <UndoLine step={step} undo={step.undo} />}
      <Handle type="source" position={Position.Right} className="invisible" />
    </div>
  );
});

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

function UndoLine({ step, undo }: { step: WorkflowStep; undo: NonNullable<WorkflowStep["undo"]> }) {
  const { words, state } = undoWords(undo);
  const content = (
    <span className="flex items-center gap-1">
      <Undo2 aria-hidden className="size-3" />
      {words}
    </span>
  );
  const look = "flex h-[26px] items-center border-t px-2.5 text-xs";
  if (state === null) return <div className={classes(look, "text-muted")}>{content}</div>;
  return (
    <JobLink id={undo.jobId} className={classes(look, "nopan", JOB_TONES[state].badge)}>
      {content}
      <span className="sr-only">: {step.name}</span>
    </JobLink>
  );
}

const StepLineEdge = memo(function StepLineEdge({ data, id }: EdgeProps<StepEdge>) {
  return <BaseEdge id={id} path={data?.path ?? ""} style={{ stroke: "var(--line-strong)", strokeWidth: 1.5 }} />;
});

const NODE_TYPES = { step: StepCard };
const EDGE_TYPES = { step: StepLineEdge };
