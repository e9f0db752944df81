/** Where the cards of a workflow's graph stand, and how the lines between them run. Heavy: loaded with the graph. */

import { graphlib, layout } from "@dagrejs/dagre";

import type { Card } from "@/lib/flow-cards";

export const CARD_WIDTH = 216;
/** A name, and a line about how it stands. */
const CARD_HEIGHT = 62;
/** How many of a group are in which state takes two lines. */
const GROUP_HEIGHT = 88;
/** What can be undone says so in a line of its own. */
const UNDO_HEIGHT = 26;

/** An open group is a frame: its name, and the steps below it in rows. */
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

export interface FlowShape {
  /** By place: how large it is, and the cards that it comes after. */
  readonly cards: readonly (Size & { readonly after: readonly number[] })[];
}

export interface FlowLayout {
  /** The upper left corner of each card, by place. */
  readonly places: readonly Point[];
  /** The path of each line as SVG writes it, by `from-to`. */
  readonly paths: Readonly<Record<string, string>>;
}

type Sized = Pick<Card, "group" | "isOpen" | "hasUndo"> & { readonly steps: readonly unknown[] };

function stepSize({ hasUndo }: Pick<Card, "hasUndo">): Size {
  return { width: CARD_WIDTH, height: CARD_HEIGHT + (hasUndo ? UNDO_HEIGHT : 0) };
}

/** What is in an open group stands in as many columns as make it about square. */
function columnsOf(card: Sized): number {
  const { width, height } = stepSize(card);
  return Math.ceil(Math.sqrt((card.steps.length * (height + FRAME_GAP)) / (width + FRAME_GAP)));
}

export function sizeOf(card: Sized): Size {
  const step = stepSize(card);
  if (card.group === null) return step;
  if (!card.isOpen) return { ...step, height: step.height - CARD_HEIGHT + GROUP_HEIGHT };
  const columns = columnsOf(card);
  const rows = Math.ceil(card.steps.length / columns);
  return {
    width: 2 * FRAME_PADDING + columns * (step.width + FRAME_GAP) - FRAME_GAP,
    height: FRAME_HEAD + rows * (step.height + FRAME_GAP) - FRAME_GAP + FRAME_PADDING,
  };
}

/** Where the steps of an open group stand in its frame, and how large each is. */
export function insideOf(card: Sized): readonly (Point & Size)[] {
  const step = stepSize(card);
  const columns = columnsOf(card);
  return card.steps.map((_, at) => ({
    x: FRAME_PADDING + (at % columns) * (step.width + FRAME_GAP),
    y: FRAME_HEAD + Math.floor(at / columns) * (step.height + FRAME_GAP),
    ...step,
  }));
}

/** Above this the search for the best order of a column takes longer than its gain is worth. */
const QUICK_ABOVE = 200;

export function layoutOf({ cards }: FlowShape): FlowLayout {
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
  cards.forEach(({ width, height }, place) => graph.setNode(String(place), { width, height }));
  cards.forEach(({ after }, place) => after.forEach((other) => graph.setEdge(String(other), String(place))));
  layout(graph, { disableOptimalOrderHeuristic: cards.length > QUICK_ABOVE });
  const middles = cards.map((_, place) => graph.node(String(place)) as Point);
  const widths = widthsOf(cards, middles);
  const widthAt = ({ x }: Point) => widths.get(Math.round(x)) ?? CARD_WIDTH;
  const places = cards.map(({ width, height }, place) => {
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
  return { places, paths };
}

/** How wide each column is, by where its middle is: as wide as the widest card in it. */
function widthsOf(cards: FlowShape["cards"], middles: readonly Point[]): ReadonlyMap<number, number> {
  const widths = new Map<number, number>();
  cards.forEach(({ width }, place) => {
    const column = Math.round((middles[place] as Point).x);
    widths.set(column, Math.max(width, widths.get(column) ?? 0));
  });
  return widths;
}

/** The middle of a card, its width, and that of the column that it stands in. */
interface End extends Point {
  readonly width: number;
  readonly column: number;
}

/** Where a line crosses the middle of a column, and how wide that is. */
interface Crossing extends Point {
  readonly width: number;
}

/** A line that crosses every column between straight, so that it runs over no card there, and bends in the gaps only. */
export function pathThrough(from: End, between: readonly Crossing[], to: End): string {
  let path = "";
  let last: Point = { x: from.x + from.width / 2, y: from.y };
  const straightTo = (x: number) => {
    if (x > last.x) path += ` L${spot({ x, y: last.y })}`;
    last = { x, y: last.y };
  };
  const bendTo = (next: Point) => {
    const middle = (last.x + next.x) / 2;
    path += ` C${spot({ x: middle, y: last.y })} ${spot({ x: middle, y: next.y })} ${spot(next)}`;
    last = next;
  };
  const start = spot(last);
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

function spot({ x, y }: Point): string {
  return `${Math.round(x * 10) / 10},${Math.round(y * 10) / 10}`;
}
