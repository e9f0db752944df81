/** Where the steps of a workflow stand in its graph, and how the lines between them run. Heavy: loaded with the graph. */

import { graphlib, layout } from "@dagrejs/dagre";

export const NODE_WIDTH = 216;
export const NODE_HEIGHT = 62;
/** A step that can be undone says so in a line of its own. */
export const UNDO_HEIGHT = 26;

export interface FlowShape {
  /** By place: whether it can be undone, and the steps that it comes after. */
  readonly steps: readonly { readonly hasUndo: boolean; readonly after: readonly number[] }[];
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface FlowLayout {
  /** The upper left corner of each step, by place. */
  readonly places: readonly Point[];
  /** The path of each line as SVG writes it, by `from-to`. */
  readonly paths: Readonly<Record<string, string>>;
}

export function heightOf(step: FlowShape["steps"][number]): number {
  return NODE_HEIGHT + (step.hasUndo ? UNDO_HEIGHT : 0);
}

/** Above this the search for the best order of a column takes longer than its gain is worth. */
const QUICK_ABOVE = 200;

export function layoutOf({ steps }: FlowShape): FlowLayout {
  const graph = new graphlib.Graph();
  graph.setGraph({
    rankdir: "LR",
    nodesep: 20,
    ranksep: 64,
    edgesep: 14,
    // The search for the shortest lines takes five times as long, and steps mostly stand as near as they can.
    ranker: "longest-path",
  });
  graph.setDefaultEdgeLabel(() => ({}));
  steps.forEach((step, place) => graph.setNode(String(place), { width: NODE_WIDTH, height: heightOf(step) }));
  steps.forEach((step, place) => step.after.forEach((other) => graph.setEdge(String(other), String(place))));
  layout(graph, { disableOptimalOrderHeuristic: steps.length > QUICK_ABOVE });
  const places = steps.map((step, place) => {
    const { x, y } = graph.node(String(place)) as Point;
    return { x: x - NODE_WIDTH / 2, y: y - heightOf(step) / 2 };
  });
  const paths: Record<string, string> = {};
  for (const { v, w } of graph.edges()) {
    const { points } = graph.edge(v, w) as { points: Point[] };
    const from = side(steps, places, Number(v), NODE_WIDTH);
    const to = side(steps, places, Number(w), 0);
    // dagre's first and last points lie on the borders of the two steps; those between belong to columns it crosses.
    paths[`${v}-${w}`] = pathThrough(from, points.slice(1, -1), to);
  }
  return { places, paths };
}

function side(steps: FlowShape["steps"], places: readonly Point[], at: number, shift: number): Point {
  const corner = places[at] as Point;
  return { x: corner.x + shift, y: corner.y + heightOf(steps[at] as FlowShape["steps"][number]) / 2 };
}

/** A line that crosses every column between straight, so that it runs over no step there, and bends in the gaps only. */
export function pathThrough(from: Point, between: readonly Point[], to: Point): string {
  let path = `M${spot(from)}`;
  let last = from;
  const bend = (next: Point) => {
    const middle = (last.x + next.x) / 2;
    path += ` C${spot({ x: middle, y: last.y })} ${spot({ x: middle, y: next.y })} ${spot(next)}`;
    last = next;
  };
  for (const { x, y } of between) {
    if (x - NODE_WIDTH / 2 <= last.x || x + NODE_WIDTH / 2 >= to.x) continue;
    bend({ x: x - NODE_WIDTH / 2, y });
    last = { x: x + NODE_WIDTH / 2, y };
    path += ` L${spot(last)}`;
  }
  bend(to);
  return path;
}

function spot({ x, y }: Point): string {
  return `${Math.round(x * 10) / 10},${Math.round(y * 10) / 10}`;
}
