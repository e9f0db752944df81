/** Where the view of a graph has to be, so that what the reader looks at stays in sight. */

import type { Point, Size } from "@/lib/flow-layout";

/** A card as it lies on the plane of the graph. */
export type Box = Point & Size;

/** How far the plane is moved, in pixels of the screen, and how large it is shown. */
export interface View extends Point {
  readonly zoom: number;
}

/** The smallest box around all of them; null around nothing. */
export function around(boxes: readonly Box[]): Box | null {
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
export function isInSight(box: Box, view: View, pane: Size): boolean {
  const left = box.x * view.zoom + view.x;
  const top = box.y * view.zoom + view.y;
  return (
    left >= 0 && top >= 0 && left + box.width * view.zoom <= pane.width && top + box.height * view.zoom <= pane.height
  );
}

/**
 * The view after cards were placed anew: one of them stays where it is on the screen, the wanted one or else that which
 * is nearest to the middle. Null where none is left of those that were there.
 */
export function steadied(
  view: View,
  pane: Size,
  before: ReadonlyMap<string, Box>,
  now: ReadonlyMap<string, Box>,
  wanted: string | null,
): View | null {
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
