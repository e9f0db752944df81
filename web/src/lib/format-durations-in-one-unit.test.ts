import { expect, it } from "vitest";

import { durationUnit, formatDurations, formatInUnit } from "@/lib/format-durations-in-one-unit";

it("formats a column in the unit of its longest duration", () => {
  expect(formatDurations([125, 3_500, 12_000])).toEqual(["0.13 s", "3.5 s", "12 s"]);
  expect(formatDurations([0, 250, 500])).toEqual(["0 ms", "250 ms", "500 ms"]);
  expect(formatDurations([0, 90_000])).toEqual(["0 s", "90 s"]);
  expect(formatDurations([30_000, 7_200_000])).toEqual(["0.01 h", "2 h"]);
});

it("takes missing values for nothing", () => {
  expect(durationUnit([null, undefined]).name).toBe("ms");
  expect(formatInUnit(1_234_567, durationUnit([1_234_567]))).toBe("20.6 min");
});
