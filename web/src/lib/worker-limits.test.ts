import { expect, test } from "vitest";

import { checkWorkerLimits } from "@/lib/worker-limits";

test("limits are whole numbers, and the minimum is not above the maximum", () => {
  expect(checkWorkerLimits({ min: "0", max: "20" })).toEqual({
    limits: { min_workers: 0, max_workers: 20 },
    minError: null,
    maxError: null,
  });
  expect(checkWorkerLimits({ min: "5", max: "4" })).toMatchObject({ limits: null, maxError: "Less than the minimum" });
});

test.each(["", " ", "-1", "1.5", "10001", "many"])("%j is no number of workers", (text) => {
  const { limits, minError, maxError } = checkWorkerLimits({ min: text, max: text });

  expect(limits).toBeNull();
  expect(minError).toBe("A whole number from 0 to 10,000");
  expect(maxError).toBe("A whole number from 1 to 10,000");
});
