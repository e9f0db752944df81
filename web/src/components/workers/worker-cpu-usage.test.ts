import { expect, test } from "vitest";

import { cpuShare, WorkerCpuUsage } from "@/components/workers/worker-cpu-usage";

const started = { started_at: "2026-01-01T00:00:00Z" };
const first = { ...started, last_seen: "2026-01-01T00:00:10Z", cpu_seconds: 1 };
const second = { ...started, last_seen: "2026-01-01T00:00:15Z", cpu_seconds: 6 };

test("the load is computed between two reports", () => {
  expect(cpuShare(second, first)).toBe(1);
});

test("a single report gives the load since the start", () => {
  expect(cpuShare(first, undefined)).toBe(0.1);
});

test("a worker that has just started shows no load", () => {
  expect(cpuShare({ ...started, last_seen: started.started_at, cpu_seconds: 0.5 }, undefined)).toBeNull();
});

test("the load stays the same until a new report", () => {
  const reports = new WorkerCpuUsage();
  reports.share("a", first);
  expect(reports.share("a", second)).toBe(1);
  expect(reports.share("a", { ...second })).toBe(1);
});
