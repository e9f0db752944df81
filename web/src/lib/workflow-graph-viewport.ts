/** Viewport arithmetic of the workflow graph: keeps what the user looks at in place. */

import type { Point, Size } from "@/lib/workflow-graph-layout";

/** The bounding box of a card, in graph coordinates. */
export type Box = Point & Size;

/** Offset in screen pixels, and zoom. */
export interface Viewport extends Point {
  readonly zoom: number;
}

/** The bounding box of all boxes; null if there are none. */
export function boundingBox(boxes: readonly Box[]): Box | null {
  if (boxes.length === 0) return null;
  const x = Math.min(...boxes.map((box) => box.x));
  const y = Math.min(...boxes.map((box) => box.y));
  return {
    x,
    y,
    width: Math.max(...boxes.map((box) => box.x + box.width)) - x,
    height: Math.max(...boxes.map((box) => box.y + box.height)) - y,
  };
}

/** Whether all of a box is within a pane of this size. */
export function isVisible(box: Box, view: Viewport, pane: Size): boolean {
  const left = box.x * view.zoom + view.x;
  const top = box.y * view.zoom + view.y;
  return (
    left >= 0 && top >= 0 && left + box.width * view.zoom <= pane.width && top + box.height * view.zoom <= pane.height
  );
}

/**
 * The viewport after a new layout: one card keeps its position on the screen, the given one or the one nearest to the
 * centre. Null if none of the earlier cards is left.
 */
export function stabilizeViewport(
  view: Viewport,
  pane: Size,
  before: ReadonlyMap<string, Box>,
  now: ReadonlyMap<string, Box>,
  wanted: string | null,
): Viewport | null {
  const middle = { x: (pane.width / 2 - view.x) / view.zoom, y: (pane.height / 2 - view.y) / view.zoom };
  const kept = [...before].filter(([key]) => now.has(key));
  const away = ([, box]: [string, Box]) =>
    Math.hypot(box.x + box.width / 2 - middle.x, box.y + box.height / 2 - middle.y);
  const nearest = kept.reduce<[string, Box] | null>(
    (best, one) => (best === null || away(one) < away(best) ? one : best),
    null,
  );
  const [key, was] = kept.find(([one]) => one === wanted) ?? nearest ?? [null, null];
  const is = key === null ? undefined : now.get(key);
  if (is === undefined || was === null) return null;
  return { ...view, x: view.x + (was.x - is.x) * view.zoom, y: view.y + (was.y - is.y) * view.zoom };
}
