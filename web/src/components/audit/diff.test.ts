import { expect, test } from "vitest";

import { differences } from "@/components/audit/diff";

test("only what changed is told", () => {
  expect(differences({ is_paused: false, words: "hourly" }, { is_paused: true, words: "hourly" })).toEqual([
    { name: "is_paused", before: "false", after: "true" },
  ]);
});

test("what was not there before, or is gone, is told as such", () => {
  expect(differences({ waiting: 3 }, { purged: 3 })).toEqual([
    { name: "waiting", before: "3", after: null },
    { name: "purged", before: null, after: "3" },
  ]);
});

test("a change without facts has no differences", () => {
  expect(differences(null, null)).toEqual([]);
});

test("nested facts are compared as a whole", () => {
  expect(differences({ where: { queue: "a" } }, { where: { queue: "b" } })).toEqual([
    { name: "where", before: '{"queue":"a"}', after: '{"queue":"b"}' },
  ]);
});
