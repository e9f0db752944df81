/** The graph of a workflow. Steps keep their places while their states change; the view stays where the reader put it. */

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

import { isOver, type Workflow } from "@/api/workflows";
import { Button } from "@/components/button";
import { Empty, Loading } from "@/components/looks";
import {
  EDGE_TYPES,
  GraphContext,
  NODE_TYPES,
  partsOf,
  type CardEdge,
  type CardNode,
  type Distance,
  type Parts,
} from "@/components/workflow/graph-cards";
import { GraphToolbar } from "@/components/workflow/graph-toolbar";
import { cardsOf, groupsOf, isOpen, type Card } from "@/lib/flow-cards";
import { layoutOf, sizeOf, type FlowLayout, type FlowShape } from "@/lib/flow-layout";
import { around, isInSight, steadied, type Box } from "@/lib/flow-view";
import { useMedia } from "@/lib/media";
import { plural } from "@/lib/numbers";
import { JOB_TONES } from "@/lib/states";
import { gravest, isRunning } from "@/lib/steps";
import type { WorkflowSearch } from "@/routes/workflow.search";

/** Larger graphs are laid out beside the page. */
const IN_WORKER_ABOVE = 200;
/** Smaller graphs are seen at a glance: a map of them would only take their room. */
const MAP_ABOVE = 12;
/** Below this the lines of a card cannot be read any more; below the second, its name in large letters cannot either. */
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

export default function Graph({ workflow, search, onSearch }: GraphProps) {
  const { steps } = workflow;
  const groups = groupsOf(steps);
  const isDoneHidden = search.hideDone === true;
  const open = useMemo(() => (search.open === "all" ? "all" : new Set(search.open)), [search.open]);
  const cards = useSame(cardsOf(steps, groups, { isDoneHidden, open }));
  const placed = usePlaced(cards);
  const areAllOpen = groups.every(([first]) => isOpen({ open }, first));

  function onToggle(group: number) {
    const others = groups.map(([first]) => first).filter((one) => one !== group && isOpen({ open }, one));
    const opened = isOpen({ open }, group) ? others : [...others, group];
    onSearch({ ...search, open: opened.length > 0 ? opened : undefined });
  }

  return (
    <div className="flex flex-col">
      <GraphToolbar
        isDoneHidden={isDoneHidden}
        hidden={steps.length - cards.reduce((seen, card) => seen + card.steps.length, 0)}
        onHideDone={(isHidden) => onSearch({ ...search, hideDone: isHidden || undefined })}
        isFollowing={search.follow === true}
        onFollow={isOver(workflow.state) ? undefined : (follow) => onSearch({ ...search, follow: follow || undefined })}
        areAllOpen={areAllOpen}
        onOpenAll={groups.length === 0 ? undefined : (all) => onSearch({ ...search, open: all ? "all" : undefined })}
      />
      {cards.length === 0 ? (
        <Empty
          title="Every step is done"
          action={
            <Button onClick={() => onSearch({ ...search, hideDone: undefined })}>
              Show {plural(steps.length, "step")}
            </Button>
          }
        >
          Steps that are done are hidden.
        </Empty>
      ) : placed === null ? (
        <div className="h-[65vh]">
          <p className="px-4 pt-4 text-muted">Placing {plural(cards.length, "card")}…</p>
          <Loading lines={6} />
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
  placed: Placed;
  onToggle: (group: number) => void;
  isFollowing: boolean;
  onStopFollowing: () => void;
}

function Canvas({ workflow, placed, onToggle, isFollowing, onStopFollowing }: CanvasProps) {
  const parts = useMemo(() => partsOf(placed.cards, placed.layout), [placed]);
  const isWide = useMedia("(min-width: 768px)");
  const zoomed = useStore(({ transform: [, , zoom] }) => distanceAt(zoom));
  const { isReady, onInit, onMoved, onUsed, onFocus } = useView(workflow, parts, isFollowing, onStopFollowing);
  // Nobody sees the cards before the view has found its place; drawing a thousand of them in full would hold it up.
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
        aria-label="Graph of the steps; the same is in the list of steps"
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
            // What the program moves comes without an event.
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
              ariaLabel="Small map of the graph"
              nodeColor={({ data }) =>
                data.isFrame ? "var(--line)" : `var(${JOB_TONES[gravest(stepsAt(workflow, data.places))].variable})`
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

function distanceAt(zoom: number): Distance {
  return zoom < FAR_BELOW ? "far" : zoom < MIDDLE_BELOW ? "middle" : "near";
}

function stepsAt({ steps }: Workflow, places: readonly number[]) {
  return places.flatMap((place) => steps[place] ?? []);
}

/**
 * Moves the view where it has to move: with the steps that run, while they are followed; to show all, while the reader
 * has not chosen what to look at; and else only so that what is looked at stays where it is.
 */
function useView(workflow: Workflow, parts: Parts, isFollowing: boolean, onStopFollowing: () => void) {
  const flow = useReactFlow<CardNode, CardEdge>();
  const store = useStoreApi();
  const moveMs = useMedia("(prefers-reduced-motion: reduce)") ? 0 : MOVE_MS;
  const [isReady, setReady] = useState(false);
  const shown = useRef<ReadonlyMap<string, Box>>(parts.boxes);
  const isChosen = useRef(false);
  const used = useRef<string | null>(null);

  const show = useCallback(
    (box: Box | null, duration: number) => {
      if (box === null) return;
      const { width, height } = store.getState();
      void flow.setViewport(getViewportForBounds(box, width, height, MIN_ZOOM, 1, PADDING), { duration });
    },
    [flow, store],
  );

  useEffect(() => {
    const before = shown.current;
    shown.current = parts.boxes;
    if (!isReady || before === parts.boxes) return;
    const steady = steadied(flow.getViewport(), store.getState(), before, parts.boxes, used.current);
    used.current = null;
    if (isChosen.current && steady !== null) void flow.setViewport(steady);
    else show(around([...parts.boxes.values()]), 0);
  }, [flow, store, show, isReady, parts]);

  const running = parts.nodes
    .filter(({ data }) => !data.isFrame && stepsAt(workflow, data.places).some(isRunning))
    .map(({ id }) => id)
    .join();
  useEffect(() => {
    if (!isReady || !isFollowing || running === "") return;
    const box = around(running.split(",").flatMap((key) => parts.boxes.get(key) ?? []));
    const view = flow.getViewport();
    if (box !== null && (view.zoom < MIDDLE_BELOW || !isInSight(box, view, store.getState()))) show(box, moveMs);
  }, [flow, store, show, isReady, isFollowing, running, parts, moveMs]);

  const onMoved = useCallback(() => {
    isChosen.current = true;
    if (isFollowing) onStopFollowing();
  }, [isFollowing, onStopFollowing]);
  return {
    isReady,
    onInit: () => setReady(true),
    onMoved,
    /** A group was opened or closed: it stays below the pointer. */
    onUsed: useCallback((key: string) => {
      isChosen.current = true;
      used.current = key;
    }, []),
    /** Who goes from card to card with Tab sees the one that has the focus. */
    onFocus: ({ target }: FocusEvent) => {
      const key = target.closest<HTMLElement>(".react-flow__node")?.dataset.id;
      const box = key === undefined ? undefined : parts.boxes.get(key);
      if (box === undefined || !target.matches(":focus-visible")) return;
      const view = flow.getViewport();
      if (isInSight(box, view, store.getState())) return;
      onMoved();
      const zoom = Math.max(view.zoom, MIDDLE_BELOW);
      void flow.setCenter(box.x + box.width / 2, box.y + Math.min(box.height, 200) / 2, { zoom, duration: moveMs });
    },
  };
}

/** The same object, for as long as it says the same. */
function useSame<T>(value: T): T {
  const text = JSON.stringify(value);
  return useMemo(() => JSON.parse(text) as T, [text]);
}

interface Placed {
  readonly cards: readonly Card[];
  readonly layout: FlowLayout;
}

/** Null until a large graph has been laid out; what was placed before is shown while it is being laid out anew. */
function usePlaced(cards: readonly Card[]): Placed | null {
  const isLarge = cards.length > IN_WORKER_ABOVE;
  const quick = useMemo(() => (isLarge ? null : { cards, layout: layoutOf(shapeOf(cards)) }), [cards, isLarge]);
  const [last, setLast] = useState<Placed | null>(quick);
  if (quick !== null && quick !== last) setLast(quick);
  const placer = useRef<Placer | null>(null);
  useEffect(() => {
    if (!isLarge) return;
    const made = makePlacer(setLast);
    placer.current = made;
    return () => made.close();
  }, [isLarge]);
  useEffect(() => {
    if (isLarge) placer.current?.place(cards);
  }, [cards, isLarge]);
  return quick ?? last;
}

function shapeOf(cards: readonly Card[]): FlowShape {
  return { cards: cards.map((card) => ({ ...sizeOf(card), after: card.after })) };
}

interface Placer {
  readonly place: (cards: readonly Card[]) => void;
  readonly close: () => void;
}

/** Lays out one graph after the other; of those that come meanwhile the last one only, so that it keeps up. */
function makePlacer(tell: (placed: Placed) => void): Placer {
  const worker = new Worker(new URL("../../lib/flow-layout.worker.ts", import.meta.url), { type: "module" });
  let asked: readonly Card[] | null = null;
  let next: readonly Card[] | null = null;
  const ask = (cards: readonly Card[]) => {
    asked = cards;
    worker.postMessage(shapeOf(cards));
  };
  worker.onmessage = ({ data }: MessageEvent<FlowLayout>) => {
    if (asked !== null) tell({ cards: asked, layout: data });
    asked = null;
    if (next !== null) ask(next);
    next = null;
  };
  return {
    place: (cards) => {
      if (asked === null) ask(cards);
      else next = cards;
    },
    close: () => worker.terminate(),
  };
}
