import { describe, expect, it } from "vitest";

import { heightOf, layoutOf, NODE_WIDTH, pathThrough, type FlowShape, type Point } from "@/lib/flow-layout";

const step = (...after: number[]) => ({ hasUndo: false, after });

function overlaps(shape: FlowShape, places: readonly Point[]): number {
  const sorted = places
    .map((place, at) => ({ ...place, bottom: place.y + heightOf(shape.steps[at] as FlowShape["steps"][number]) }))
    .sort((a, b) => a.x - b.x || a.y - b.y);
  return sorted.filter((one, at) => {
    const next = sorted[at + 1];
    return next !== undefined && next.x === one.x && next.y < one.bottom;
  }).length;
}

describe("layoutOf", () => {
  it("puts each step to the right of those that it comes after", () => {
    const { places } = layoutOf({ steps: [step(), step(0), step(0), step(1, 2)] });
    const x = places.map((place) => place.x);
    expect(x[1]).toBeGreaterThanOrEqual((x[0] as number) + NODE_WIDTH);
    expect(x[1]).toBe(x[2]);
    expect(x[3]).toBeGreaterThanOrEqual((x[1] as number) + NODE_WIDTH);
  });

  it("lets no two steps overlap, those that can be undone included", () => {
    const steps = Array.from({ length: 30 }, (_, at) => ({ hasUndo: at % 2 === 0, after: at < 5 ? [] : [at % 5] }));
    expect(overlaps({ steps }, layoutOf({ steps }).places)).toBe(0);
  });

  it("draws every line, from border to border", () => {
    const { paths, places } = layoutOf({ steps: [step(), step(0), step(0, 1)] });
    expect(Object.keys(paths).sort()).toEqual(["0-1", "0-2", "1-2"]);
    expect(paths["0-1"]).toMatch(new RegExp(`^M${(places[0] as { x: number }).x + NODE_WIDTH},`));
  });

  it("lays out a thousand steps", () => {
    const steps = Array.from({ length: 1000 }, (_, at) => ({
      hasUndo: false,
      after: at < 50 ? [] : [at - 50],
    }));
    const { places, paths } = layoutOf({ steps });
    expect(places).toHaveLength(1000);
    expect(Object.keys(paths)).toHaveLength(950);
    expect(overlaps({ steps }, places)).toBe(0);
  }, 60_000);
});

describe("pathThrough", () => {
  it("crosses the columns between straight", () => {
    const path = pathThrough({ x: 0, y: 0 }, [{ x: 400, y: 50 }], { x: 800, y: 0 });
    expect(path).toContain(`${400 - NODE_WIDTH / 2},50 L${400 + NODE_WIDTH / 2},50`);
  });
});
