import { expect, it } from "vitest";

import { formatTiny } from "@/lib/format-number";

it("says any count in four characters at most", () => {
  expect([0, 7, 999, 1000, 1249, 9_949, 9_951, 12_345, 999_499, 999_500, 4_500_000].map(formatTiny)).toEqual([
    "0",
    "7",
    "999",
    "1.0k",
    "1.2k",
    "9.9k",
    "10k",
    "12k",
    "999k",
    "1.0M",
    "4.5M",
  ]);
});
