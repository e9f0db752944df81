import { expect, test } from "vitest";

import { cpuShare, Reports } from "@/components/workers/load";

const started = { started_at: "2026-01-01T00:00:00Z" };
const first = { ...started, last_seen: "2026-01-01T00:00:10Z", cpu_seconds: 1 };
const second = { ...started, last_seen: "2026-01-01T00:00:15Z", cpu_seconds: 6 };

test("the load is told between two reports", () => {
  expect(cpuShare(second, first)).toBe(1);
});

test("of one report alone, the load since the start is told", () => {
  expect(cpuShare(first, undefined)).toBe(0.1);
});

test("nothing is told of a worker that has only just started", () => {
  expect(cpuShare({ ...started, last_seen: started.started_at, cpu_seconds: 0.5 }, undefined)).toBeNull();
});

test("the load stays as it was told while nothing new is reported", () => {
  const reports = new Reports();
  reports.share("a", first);
  expect(reports.share("a", second)).toBe(1);
  expect(reports.share("a", { ...second })).toBe(1);
});
