import { describe, expect, it } from "vitest";

import { alignPrevious, isolatedPoints, needsLogScale } from "@/lib/chart-scale-gaps-and-comparison";
import { at, START } from "@/test/factories";

describe("a logarithmic scale", () => {
  it("is needed where an outlier flattens the rest", () => {
    expect(needsLogScale([120, 130, null, 110, 9000])).toBe(true);
  });

  it("is not needed for ordinary spikes, nor for few values", () => {
    expect(needsLogScale([120, 130, 110, 600])).toBe(false);
    expect(needsLogScale([0, 0, 0, 0, 500])).toBe(false);
    expect(needsLogScale([1, 9000])).toBe(false);
  });
});

it("values without a neighbour are points", () => {
  expect(isolatedPoints([1, null, 2, 3, undefined, 4])).toEqual([0, 5]);
  expect(isolatedPoints([7])).toEqual([0]);
});

it("an earlier period with wider steps is laid below the times of the chart", () => {
  const hours = [
    { at: at(0), n: 1 },
    { at: at(3600), n: 2 },
  ];
  const previous = { since: at(0), step_ms: 3_600_000, points: hours };
  const day = 86_400_000;
  const times = [0, 1800, 3600, 7200].map((s) => START + day + s * 1000);

  expect(alignPrevious(times, day, previous).map((point) => (point as { n: number } | null)?.n ?? null)).toEqual([
    1,
    1,
    2,
    null,
  ]);
});
