import { expect, it } from "vitest";

import { formatOutcome } from "@/lib/redrive-outcome";

it("says how many succeeded and how many failed again", () => {
  expect(formatOutcome({ succeeded: 250, failed_again: 48, unfinished: 2 })).toBe(
    "250 succeeded, 48 failed again, 2 not finished",
  );
  expect(formatOutcome({ succeeded: 1200, failed_again: 0, unfinished: 0, gone: 3 })).toBe(
    "1,200 succeeded, 3 no longer stored",
  );
});
