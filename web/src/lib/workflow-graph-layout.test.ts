import { describe, expect, it } from "vitest";

import {
  CARD_WIDTH,
  innerBoxes,
  layoutGraph,
  pathThrough,
  cardSize,
  type GraphShape,
  type Point,
} from "@/lib/workflow-graph-layout";

const card = (...after: number[]) => ({ width: CARD_WIDTH, height: 62, after });

function overlaps({ cards }: GraphShape, places: readonly Point[]): number {
  const boxes = places.map((place, at) => ({ ...place, ...(cards[at] as GraphShape["cards"][number]) }));
  return boxes.filter((one, at) =>
    boxes.some(
      (other, place) =>
        place > at &&
        one.x < other.x + other.width &&
        other.x < one.x + one.width &&
        one.y < other.y + other.height &&
        other.y < one.y + one.height,
    ),
  ).length;
}

describe("layoutOf", () => {
  it("puts each card to the right of those that it comes after", () => {
    const { positions } = layoutGraph({ cards: [card(), card(0), card(0), card(1, 2)] });
    const x = positions.map((place) => place.x);
    expect(x[1]).toBeGreaterThanOrEqual((x[0] as number) + CARD_WIDTH);
    expect(x[1]).toBe(x[2]);
    expect(x[3]).toBeGreaterThanOrEqual((x[1] as number) + CARD_WIDTH);
  });

  it("lets no two cards overlap, however large they are", () => {
    const cards = Array.from({ length: 30 }, (_, at) => ({
      width: at % 7 === 0 ? 900 : CARD_WIDTH,
      height: at % 2 === 0 ? 400 : 62,
      after: at < 5 ? [] : [at % 5],
    }));
    expect(overlaps({ cards }, layoutGraph({ cards }).positions)).toBe(0);
  });

  it("draws every line, from border to border", () => {
    const { paths, positions } = layoutGraph({ cards: [card(), card(0), card(0, 1)] });
    expect(Object.keys(paths).sort()).toEqual(["0-1", "0-2", "1-2"]);
    expect(paths["0-1"]).toMatch(new RegExp(`^M${(positions[0] as Point).x + CARD_WIDTH},`));
    expect(paths["0-1"]).toMatch(new RegExp(` ${(positions[1] as Point).x},[0-9.]+$`));
  });

  it("lays out a thousand cards", () => {
    const cards = Array.from({ length: 1000 }, (_, at) => card(...(at < 50 ? [] : [at - 50])));
    const { positions, paths } = layoutGraph({ cards });
    expect(positions).toHaveLength(1000);
    expect(Object.keys(paths)).toHaveLength(950);
    expect(overlaps({ cards }, positions)).toBe(0);
  }, 60_000);
});

describe("an open group", () => {
  const group = { group: 1, isOpen: true, hasUndo: true, steps: Array.from({ length: 40 }, (_, at) => at) };

  it("has room for its steps, side by side", () => {
    const size = cardSize(group);
    const inside = innerBoxes(group);
    expect(inside).toHaveLength(40);
    for (const { x, y, width, height } of inside) {
      expect(x + width).toBeLessThan(size.width);
      expect(y + height).toBeLessThan(size.height);
    }
    const cards = inside.map(({ width, height }) => ({ width, height, after: [] }));
    expect(overlaps({ cards }, inside)).toBe(0);
  });

  it("is about as wide as it is high", () => {
    const { width, height } = cardSize(group);
    expect(width / height).toBeGreaterThan(0.5);
    expect(width / height).toBeLessThan(2);
  });
});

describe("pathThrough", () => {
  const end = (x: number, y: number, column = CARD_WIDTH) => ({ x, y, width: CARD_WIDTH, column });

  it("crosses the columns between straight", () => {
    const path = pathThrough(end(0, 0), [{ x: 800, y: 50, width: 600 }], end(1600, 0));
    expect(path).toContain("500,50 L1100,50");
  });

  it("leaves a wide column straight, and comes to its card in one straight", () => {
    const path = pathThrough(end(0, 0, 600), [], end(1600, 70, 600));
    expect(path).toMatch(/^M108,0 L300,0 C/);
    expect(path).toMatch(/ 1300,70 L1492,70$/);
  });
});
