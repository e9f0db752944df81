import { expect, test } from "vitest";

import { diffValues } from "@/components/audit/diff-values";

test("only changed fields are shown", () => {
  expect(diffValues({ is_paused: false, words: "hourly" }, { is_paused: true, words: "hourly" })).toEqual([
    { name: "is_paused", before: "false", after: "true" },
  ]);
});

test("added and removed fields are marked as such", () => {
  expect(diffValues({ waiting: 3 }, { purged: 3 })).toEqual([
    { name: "waiting", before: "3", after: null },
    { name: "purged", before: null, after: "3" },
  ]);
});

test("a change without facts has no differences", () => {
  expect(diffValues(null, null)).toEqual([]);
});

test("nested facts are compared as a whole", () => {
  expect(diffValues({ where: { queue: "a" } }, { where: { queue: "b" } })).toEqual([
    { name: "where", before: '{"queue":"a"}', after: '{"queue":"b"}' },
  ]);
});
