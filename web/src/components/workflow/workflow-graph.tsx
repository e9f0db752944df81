/** The graph of a workflow. Steps keep their positions while their states change, and the viewport its place. */

import {
  Controls,
  getViewportForBounds,
  MiniMap,
  ReactFlow,
  ReactFlowProvider,
  useReactFlow,
  useStore,
  useStoreApi,
} from "@xyflow/react";
import "@xyflow/react/dist/base.css";
import { useCallback, useEffect, useMemo, useRef, useState, type FocusEvent } from "react";

import { isFinishedWorkflow, type Workflow } from "@/api/workflows";
import { Button } from "@/components/buttons";
import { EmptyState, LoadingState } from "@/components/loading-empty-error-states";
import {
  EDGE_TYPES,
  GraphContext,
  NODE_TYPES,
  buildGraph,
  type CardEdge,
  type CardNode,
  type ZoomLevel,
  type GraphElements,
} from "@/components/workflow/graph-nodes-and-edges";
import { GraphViewOptions } from "@/components/workflow/graph-view-options";
import { formatPlural } from "@/lib/format-number";
import { JOB_STATE_STYLES } from "@/lib/job-and-workflow-states";
import { useMediaQuery } from "@/lib/use-media-query";
import { buildCards, groupSteps, isOpen, type Card } from "@/lib/workflow-graph-cards";
import { layoutGraph, cardSize, type GraphLayout, type GraphShape } from "@/lib/workflow-graph-layout";
import { boundingBox, isVisible, stabilizeViewport, type Box } from "@/lib/workflow-graph-viewport";
import { mostSevereState, isRunning } from "@/lib/workflow-step-state";
import type { WorkflowSearch } from "@/routes/workflow.search-params";

/** Larger graphs are laid out in a web worker. */
const IN_WORKER_ABOVE = 200;
/** Smaller graphs need no minimap. */
const MAP_ABOVE = 12;
/** Zoom levels: below the first the text of a card is unreadable, below the second its enlarged name, too. */
const MIDDLE_BELOW = 0.4;
const FAR_BELOW = 0.15;
const MIN_ZOOM = 0.02;
const PADDING = 0.1;
const MOVE_MS = 250;

export type GraphSearch = Pick<WorkflowSearch, "hideDone" | "follow" | "open">;

interface GraphProps {
  workflow: Workflow;
  search: GraphSearch;
  onSearch: (search: GraphSearch) => void;
}

export default function WorkflowGraph({ workflow, search, onSearch }: GraphProps) {
  const { steps } = workflow;
  const groups = groupSteps(steps);
  const isDoneHidden = search.hideDone === true;
  const open = useMemo(() => (search.open === "all" ? "all" : new Set(search.open)), [search.open]);
  const cards = useStable(buildCards(steps, groups, { isDoneHidden, open }));
  const placed = useGraphLayout(cards);
  const areAllOpen = groups.every(([first]) => isOpen({ open }, first));

  function onToggle(group: number) {
    const others = groups.map(([first]) => first).filter((one) => one !== group && isOpen({ open }, one));
    const opened = isOpen({ open }, group) ? others : [...others, group];
    onSearch({ ...search, open: opened.length > 0 ? opened : undefined });
  }

  return (
    <div className="flex flex-col">
      <GraphViewOptions
        isDoneHidden={isDoneHidden}
        hidden={steps.length - cards.reduce((seen, card) => seen + card.steps.length, 0)}
        onHideDone={(isHidden) => onSearch({ ...search, hideDone: isHidden || undefined })}
        isFollowing={search.follow === true}
        onFollow={
          isFinishedWorkflow(workflow.state)
            ? undefined
            : (follow) => onSearch({ ...search, follow: follow || undefined })
        }
        areAllOpen={areAllOpen}
        onOpenAll={groups.length === 0 ? undefined : (all) => onSearch({ ...search, open: all ? "all" : undefined })}
      />
      {cards.length === 0 ? (
        <EmptyState
          title="All steps are completed"
          action={
            <Button onClick={() => onSearch({ ...search, hideDone: undefined })}>
              Show {formatPlural(steps.length, "step")}
            </Button>
          }
        >
          Completed steps are hidden.
        </EmptyState>
      ) : placed === null ? (
        <div className="h-[65vh]">
          <p className="px-4 pt-4 text-muted">Laying out {formatPlural(cards.length, "card")}…</p>
          <LoadingState lines={6} />
        </div>
      ) : (
        <ReactFlowProvider>
          <Canvas
            workflow={workflow}
            placed={placed}
            onToggle={onToggle}
            isFollowing={search.follow === true}
            onStopFollowing={() => onSearch({ ...search, follow: undefined })}
          />
        </ReactFlowProvider>
      )}
    </div>
  );
}

interface CanvasProps {
  workflow: Workflow;
  placed: PlacedCards;
  onToggle: (group: number) => void;
  isFollowing: boolean;
  onStopFollowing: () => void;
}

function Canvas({ workflow, placed, onToggle, isFollowing, onStopFollowing }: CanvasProps) {
  const parts = useMemo(() => buildGraph(placed.cards, placed.layout), [placed]);
  const isWide = useMediaQuery("(min-width: 768px)");
  const zoomed = useStore(({ transform: [, , zoom] }) => zoomLevel(zoom));
  const { isReady, onInit, onMoved, onUsed, onFocus } = useViewport(workflow, parts, isFollowing, onStopFollowing);
  // Cards are invisible until the viewport is set; drawing a thousand of them in full would delay it.
  const distance = isReady ? zoomed : "far";
  const context = useMemo(
    () => ({
      workflow,
      distance,
      onToggle: (group: number) => {
        onUsed(String(group));
        onToggle(group);
      },
    }),
    [workflow, distance, onToggle, onUsed],
  );
  return (
    <GraphContext value={context}>
      <div
        className="h-[65vh] min-h-80"
        role="group"
        aria-label="Graph of the steps; also available as a list of steps"
        onFocus={onFocus}
      >
        <ReactFlow<CardNode, CardEdge>
          nodes={parts.nodes}
          edges={parts.edges}
          nodeTypes={NODE_TYPES}
          edgeTypes={EDGE_TYPES}
          fitView
          fitViewOptions={{ padding: PADDING, maxZoom: 1 }}
          minZoom={MIN_ZOOM}
          maxZoom={1.5}
          nodesDraggable={false}
          nodesConnectable={false}
          nodesFocusable={false}
          edgesFocusable={false}
          elementsSelectable={false}
          onlyRenderVisibleElements={parts.nodes.length > IN_WORKER_ABOVE}
          proOptions={{ hideAttribution: true }}
          onInit={onInit}
          onMove={(event) => {
            // Programmatic moves have no event.
            if (event !== null) onMoved();
          }}
        >
          <Controls showInteractive={false} onZoomIn={onMoved} onZoomOut={onMoved} onFitView={onMoved} />
          {isWide && parts.nodes.length > MAP_ABOVE && (
            <MiniMap<CardNode>
              pannable
              zoomable
              onPointerDown={onMoved}
              onWheel={onMoved}
              ariaLabel="Minimap of the graph"
              nodeColor={({ data }) =>
                data.isFrame
                  ? "var(--line)"
                  : `var(${JOB_STATE_STYLES[mostSevereState(stepsAt(workflow, data.places))].variable})`
              }
              bgColor="var(--sunken)"
              maskColor="color-mix(in srgb, var(--bg) 70%, transparent)"
              nodeBorderRadius={8}
            />
          )}
        </ReactFlow>
      </div>
    </GraphContext>
  );
}

function zoomLevel(zoom: number): ZoomLevel {
  return zoom < FAR_BELOW ? "far" : zoom < MIDDLE_BELOW ? "middle" : "near";
}

function stepsAt({ steps }: Workflow, places: readonly number[]) {
  return places.flatMap((place) => steps[place] ?? []);
}

/**
 * Moves the viewport: with the running steps while they are followed; to fit all, until the user has moved it; otherwise
 * only to keep what the user looks at in place.
 */
function useViewport(workflow: Workflow, parts: GraphElements, isFollowing: boolean, onStopFollowing: () => void) {
  const reactFlow = useReactFlow<CardNode, CardEdge>();
  const store = useStoreApi();
  const moveMs = useMediaQuery("(prefers-reduced-motion: reduce)") ? 0 : MOVE_MS;
  const [isReady, setReady] = useState(false);
  const shown = useRef<ReadonlyMap<string, Box>>(parts.boxes);
  const isChosen = useRef(false);
  const used = useRef<string | null>(null);

  const show = useCallback(
    (box: Box | null, duration: number) => {
      if (box === null) return;
      const { width, height } = store.getState();
      void reactFlow.setViewport(getViewportForBounds(box, width, height, MIN_ZOOM, 1, PADDING), { duration });
    },
    [reactFlow, store],
  );

  useEffect(() => {
    const before = shown.current;
    shown.current = parts.boxes;
    if (!isReady || before === parts.boxes) return;
    const steady = stabilizeViewport(reactFlow.getViewport(), store.getState(), before, parts.boxes, used.current);
    used.current = null;
    if (isChosen.current && steady !== null) void reactFlow.setViewport(steady);
    else show(boundingBox([...parts.boxes.values()]), 0);
  }, [reactFlow, store, show, isReady, parts]);

  const running = parts.nodes
    .filter(({ data }) => !data.isFrame && stepsAt(workflow, data.places).some(isRunning))
    .map(({ id }) => id)
    .join();
  useEffect(() => {
    if (!isReady || !isFollowing || running === "") return;
    const box = boundingBox(running.split(",").flatMap((key) => parts.boxes.get(key) ?? []));
    const view = reactFlow.getViewport();
    if (box !== null && (view.zoom < MIDDLE_BELOW || !isVisible(box, view, store.getState()))) show(box, moveMs);
  }, [reactFlow, store, show, isReady, isFollowing, running, parts, moveMs]);

  const onMoved = useCallback(() => {
    isChosen.current = true;
    if (isFollowing) onStopFollowing();
  }, [isFollowing, onStopFollowing]);
  return {
    isReady,
    onInit: () => setReady(true),
    onMoved,
    /** A group was expanded or collapsed: it stays below the pointer. */
    onUsed: useCallback((key: string) => {
      isChosen.current = true;
      used.current = key;
    }, []),
    /** Scrolls the card that got the focus with Tab into view. */
    onFocus: ({ target }: FocusEvent) => {
      const key = target.closest<HTMLElement>(".react-flow__node")?.dataset.id;
      const box = key === undefined ? undefined : parts.boxes.get(key);
      if (box === undefined || !target.matches(":focus-visible")) return;
      const view = reactFlow.getViewport();
      if (isVisible(box, view, store.getState())) return;
      onMoved();
      const zoom = Math.max(view.zoom, MIDDLE_BELOW);
      void reactFlow.setCenter(box.x + box.width / 2, box.y + Math.min(box.height, 200) / 2, {
        zoom,
        duration: moveMs,
      });
    },
  };
}

/** Returns the same object as long as its content is the same. */
function useStable<T>(value: T): T {
  const text = JSON.stringify(value);
  return useMemo(() => JSON.parse(text) as T, [text]);
}

interface PlacedCards {
  readonly cards: readonly Card[];
  readonly layout: GraphLayout;
}

/** Null until a large graph has been laid out; the previous layout stays until the new one is ready. */
function useGraphLayout(cards: readonly Card[]): PlacedCards | null {
  const isLarge = cards.length > IN_WORKER_ABOVE;
  const quick = useMemo(() => (isLarge ? null : { cards, layout: layoutGraph(toGraphShape(cards)) }), [cards, isLarge]);
  const [last, setLast] = useState<PlacedCards | null>(quick);
  if (quick !== null && quick !== last) setLast(quick);
  const placer = useRef<LayoutWorker | null>(null);
  useEffect(() => {
    if (!isLarge) return;
    const made = startLayoutWorker(setLast);
    placer.current = made;
    return () => made.close();
  }, [isLarge]);
  useEffect(() => {
    if (isLarge) placer.current?.place(cards);
  }, [cards, isLarge]);
  return quick ?? last;
}

function toGraphShape(cards: readonly Card[]): GraphShape {
  return { cards: cards.map((card) => ({ ...cardSize(card), after: card.after })) };
}

interface LayoutWorker {
  readonly place: (cards: readonly Card[]) => void;
  readonly close: () => void;
}

/** Lays out one graph at a time. Of the requests that arrive meanwhile only the last is kept. */
function startLayoutWorker(onPlaced: (placed: PlacedCards) => void): LayoutWorker {
  const worker = new Worker(new URL("../../lib/workflow-graph-layout.worker.ts", import.meta.url), { type: "module" });
  let current: readonly Card[] | null = null;
  let next: readonly Card[] | null = null;
  const ask = (cards: readonly Card[]) => {
    current = cards;
    worker.postMessage(toGraphShape(cards));
  };
  worker.onmessage = ({ data }: MessageEvent<GraphLayout>) => {
    if (current !== null) onPlaced({ cards: current, layout: data });
    current = null;
    if (next !== null) ask(next);
    next = null;
  };
  return {
    place: (cards) => {
      if (current === null) ask(cards);
      else next = cards;
    },
    close: () => worker.terminate(),
  };
}
