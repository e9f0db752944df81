/** The layout of the workflow graph: positions of the cards and paths of the lines. Large (dagre): loaded with the graph. */

import { graphlib, layout } from "@dagrejs/dagre";

import type { Card } from "@/lib/workflow-graph-cards";

export const CARD_WIDTH = 216;
/** Height of a card: its name and a status line. */
const CARD_HEIGHT = 62;
/** The state counts of a group take two lines. */
const GROUP_HEIGHT = 88;
/** Height of the line that shows the compensation. */
const UNDO_HEIGHT = 26;

/** An expanded group is a frame: its name, and rows of steps below. */
export const FRAME_HEAD = 36;
const FRAME_PADDING = 12;
const FRAME_GAP = 12;

export interface Size {
  readonly width: number;
  readonly height: number;
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface GraphShape {
  /** Size and predecessors of each card, by index. */
  readonly cards: readonly (Size & { readonly after: readonly number[] })[];
}

export interface GraphLayout {
  /** The upper left corner of each card, by index. */
  readonly positions: readonly Point[];
  /** The SVG path of each line, by `from-to`. */
  readonly paths: Readonly<Record<string, string>>;
}

type Sized = Pick<Card, "group" | "isOpen" | "hasUndo"> & { readonly steps: readonly unknown[] };

function stepSize({ hasUndo }: Pick<Card, "hasUndo">): Size {
  return { width: CARD_WIDTH, height: CARD_HEIGHT + (hasUndo ? UNDO_HEIGHT : 0) };
}

/** Number of columns that makes an expanded group about square. */
function columnCount(card: Sized): number {
  const { width, height } = stepSize(card);
  return Math.ceil(Math.sqrt((card.steps.length * (height + FRAME_GAP)) / (width + FRAME_GAP)));
}

export function cardSize(card: Sized): Size {
  const step = stepSize(card);
  if (card.group === null) return step;
  if (!card.isOpen) return { ...step, height: step.height - CARD_HEIGHT + GROUP_HEIGHT };
  const columns = columnCount(card);
  const rows = Math.ceil(card.steps.length / columns);
  return {
    width: 2 * FRAME_PADDING + columns * (step.width + FRAME_GAP) - FRAME_GAP,
    height: FRAME_HEAD + rows * (step.height + FRAME_GAP) - FRAME_GAP + FRAME_PADDING,
  };
}

/** Positions and sizes of the steps in an expanded group. */
export function innerBoxes(card: Sized): readonly (Point & Size)[] {
  const step = stepSize(card);
  const columns = columnCount(card);
  return card.steps.map((_, at) => ({
    x: FRAME_PADDING + (at % columns) * (step.width + FRAME_GAP),
    y: FRAME_HEAD + Math.floor(at / columns) * (step.height + FRAME_GAP),
    ...step,
  }));
}

/** Above this number of cards the search for the best order within columns takes too long. */
const FAST_LAYOUT_ABOVE = 200;

export function layoutGraph({ cards }: GraphShape): GraphLayout {
  const graph = new graphlib.Graph();
  graph.setGraph({
    rankdir: "LR",
    nodesep: 20,
    ranksep: 64,
    edgesep: 14,
    // Network simplex takes five times as long for nearly the same result.
    ranker: "longest-path",
  });
  graph.setDefaultEdgeLabel(() => ({}));
  cards.forEach(({ width, height }, place) => graph.setNode(String(place), { width, height }));
  cards.forEach(({ after }, place) => after.forEach((other) => graph.setEdge(String(other), String(place))));
  layout(graph, { disableOptimalOrderHeuristic: cards.length > FAST_LAYOUT_ABOVE });
  const middles = cards.map((_, place) => graph.node(String(place)) as Point);
  const widths = columnWidths(cards, middles);
  const widthAt = ({ x }: Point) => widths.get(Math.round(x)) ?? CARD_WIDTH;
  const positions = cards.map(({ width, height }, place) => {
    const { x, y } = middles[place] as Point;
    return { x: x - width / 2, y: y - height / 2 };
  });
  const paths: Record<string, string> = {};
  for (const { v, w } of graph.edges()) {
    const { points } = graph.edge(v, w) as { points: Point[] };
    const [from, to] = [Number(v), Number(w)].map((place) => {
      const middle = middles[place] as Point;
      return { ...middle, width: cards[place]?.width ?? CARD_WIDTH, column: widthAt(middle) };
    }) as [End, End];
    // dagre's first and last points lie on the borders of the two cards; those between belong to columns it crosses.
    const between = points.slice(1, -1).map((point) => ({ ...point, width: widthAt(point) }));
    paths[`${v}-${w}`] = pathThrough(from, between, to);
  }
  return { positions, paths };
}

/** The width of each column, by its centre: that of its widest card. */
function columnWidths(cards: GraphShape["cards"], middles: readonly Point[]): ReadonlyMap<number, number> {
  const widths = new Map<number, number>();
  cards.forEach(({ width }, place) => {
    const column = Math.round((middles[place] as Point).x);
    widths.set(column, Math.max(width, widths.get(column) ?? 0));
  });
  return widths;
}

/** Centre and width of a card, and the width of its column. */
interface End extends Point {
  readonly width: number;
  readonly column: number;
}

/** Where a line crosses the centre of a column, and the column's width. */
interface Crossing extends Point {
  readonly width: number;
}

/** A line that is straight within columns, so that it crosses no card, and bends only in the gaps. */
export function pathThrough(from: End, between: readonly Crossing[], to: End): string {
  let path = "";
  let last: Point = { x: from.x + from.width / 2, y: from.y };
  const straightTo = (x: number) => {
    if (x > last.x) path += ` L${formatPoint({ x, y: last.y })}`;
    last = { x, y: last.y };
  };
  const bendTo = (next: Point) => {
    const middle = (last.x + next.x) / 2;
    path += ` C${formatPoint({ x: middle, y: last.y })} ${formatPoint({ x: middle, y: next.y })} ${formatPoint(next)}`;
    last = next;
  };
  const start = formatPoint(last);
  straightTo(from.x + from.column / 2);
  for (const { x, y, width } of between) {
    if (x - width / 2 <= last.x || x + width / 2 >= to.x - to.column / 2) continue;
    bendTo({ x: x - width / 2, y });
    straightTo(x + width / 2);
  }
  bendTo({ x: to.x - to.column / 2, y: to.y });
  straightTo(to.x - to.width / 2);
  return `M${start}${path}`;
}

function formatPoint({ x, y }: Point): string {
  return `${Math.round(x * 10) / 10},${Math.round(y * 10) / 10}`;
}
