import { expect, it } from "vitest";

import { compareWithUsual } from "@/lib/compare-with-usual";

it("says how many times longer it takes", () => {
  expect(compareWithUsual("Jobs run for", 3500, 125)).toEqual({
    sentence: "Jobs run for 3.5 s, usually 0.13 s: 28 × longer",
    isNotable: true,
  });
  expect(compareWithUsual("Jobs wait", 600_000, 40)?.sentence).toBe("Jobs wait 10 min, usually 40 ms: 15000 × longer");
});

it("says that it is as usual", () => {
  expect(compareWithUsual("Jobs run for", 130, 125)).toEqual({
    sentence: "Jobs run for 130 ms, as usual (125 ms)",
    isNotable: false,
  });
});

it("compares with nothing where no history is stored, and says nothing if nothing ran", () => {
  expect(compareWithUsual("Jobs run for", 130, null)?.sentence).toBe("Jobs run for 130 ms");
  expect(compareWithUsual("Jobs run for", null, 125)).toBeNull();
});
