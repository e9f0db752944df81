import { describe, expect, it } from "vitest";

import { boundingBox, isVisible, stabilizeViewport, type Box } from "@/lib/workflow-graph-viewport";

const box = (x: number, y: number): Box => ({ x, y, width: 200, height: 60 });
const PANE = { width: 1000, height: 500 };

describe("around", () => {
  it("holds every box", () => {
    expect(boundingBox([box(0, 300), box(500, -40)])).toEqual({ x: 0, y: -40, width: 700, height: 400 });
    expect(boundingBox([])).toBeNull();
  });
});

describe("isInSight", () => {
  it("wants all of it within the pane", () => {
    expect(isVisible(box(0, 0), { x: 0, y: 0, zoom: 1 }, PANE)).toBe(true);
    expect(isVisible(box(900, 0), { x: 0, y: 0, zoom: 1 }, PANE)).toBe(false);
    expect(isVisible(box(900, 0), { x: 0, y: 0, zoom: 0.5 }, PANE)).toBe(true);
    expect(isVisible(box(0, 0), { x: -1, y: 0, zoom: 0.5 }, PANE)).toBe(false);
  });
});

describe("steadied", () => {
  const view = { x: -1000, y: 0, zoom: 2 };
  // The middle of the pane is at 750, 125 of the plane.
  const before = new Map([
    ["far", box(0, 0)],
    ["near", box(700, 100)],
  ]);

  it("keeps the card in the middle where it is on the screen", () => {
    const now = new Map([
      ["near", box(100, 80)],
      ["far", box(0, 0)],
    ]);
    expect(stabilizeViewport(view, PANE, before, now, null)).toEqual({ x: 200, y: 40, zoom: 2 });
  });

  it("keeps the one that the reader just used, if it is there", () => {
    const now = new Map([
      ["near", box(100, 80)],
      ["far", box(50, 0)],
    ]);
    expect(stabilizeViewport(view, PANE, before, now, "far")).toEqual({ x: -1100, y: 0, zoom: 2 });
    expect(stabilizeViewport(view, PANE, before, now, "gone")).toEqual({ x: 200, y: 40, zoom: 2 });
  });

  it("has nothing to hold on to where all cards are new", () => {
    expect(stabilizeViewport(view, PANE, before, new Map([["new", box(0, 0)]]), null)).toBeNull();
  });
});
