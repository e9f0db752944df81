import { describe, expect, it } from "vitest";

import { criticalPath } from "@/lib/workflow-critical-path";
import { stepSpans } from "@/lib/workflow-step-spans";
import { anAttempt, at, START } from "@/test/factories";

type Step = Parameters<typeof stepSpans>[0]["steps"][number];

function ran(after: number[], from: number, until: number): Step {
  const times = { started_at: at(from), ended_at: at(until) };
  const executions = [anAttempt(1, from, until, "completed")];
  return { after, outcome: "completed", items: null, ...times, status: "COMPLETED", executions };
}
function aList(after: number[], outcome: string): Step {
  return { after, outcome, items: 3, started_at: null, ended_at: null, status: null, executions: [] };
}
const waits = (after: number[]): Step => ({
  after,
  outcome: "waiting",
  items: null,
  started_at: null,
  ended_at: null,
  status: "BLOCKED",
  executions: [],
});

function seconds(spans: ReturnType<typeof stepSpans>): unknown {
  return spans.map(
    (span) => span && [span.readyAt, span.startedAt, span.endedAt].map((moment) => (moment - START) / 1000),
  );
}

describe("stepSpans", () => {
  it("lets a step wait from the end of the last one that it needs", () => {
    const steps = [ran([], 1, 2), ran([], 1, 5), ran([0, 1], 7, 8)];
    expect(seconds(stepSpans({ created_at: at(0), ended_at: at(8), steps }, START))).toEqual([
      [0, 1, 2],
      [0, 1, 5],
      [5, 7, 8],
    ]);
  });

  it("guesses the times of a step over a list from the steps around it", () => {
    const steps = [ran([], 0, 2), aList([0], "completed"), ran([1], 6, 7)];
    const spans = stepSpans({ created_at: at(0), ended_at: at(7), steps }, START);
    expect(seconds(spans)).toEqual([
      [0, 0, 2],
      [2, 2, 6],
      [6, 6, 7],
    ]);
    expect(spans[1]?.isEstimated).toBe(true);
  });

  it("has no span for what has not begun, and one until now for what goes on", () => {
    const running: Step = { ...waits([]), started_at: at(1), status: "PROCESSING" };
    const steps = [running, waits([0]), aList([0], "waiting")];
    const spans = stepSpans({ created_at: at(0), ended_at: null, steps }, START + 9000);
    expect(seconds(spans)).toEqual([[0, 1, 9], null, [9, 9, 9]]);
    expect(spans[0]?.isOpen).toBe(true);
  });

  it("starts with the first attempt, and goes on while it waits for the next", () => {
    const retried = { ...ran([], 1, 7), executions: [anAttempt(1, 1, 2, "failed"), anAttempt(2, 6, 7, "completed")] };
    const retries: Step = {
      ...waits([0]),
      started_at: at(8),
      status: "SCHEDULED",
      executions: [anAttempt(1, 8, 9, "failed")],
    };
    const spans = stepSpans({ created_at: at(0), ended_at: null, steps: [retried, retries] }, START + 12_000);
    expect(seconds(spans)).toEqual([
      [0, 1, 7],
      [7, 8, 12],
    ]);
    expect(spans.map((span) => span?.attempts.map(({ waitedUntil, ranUntil }) => [waitedUntil, ranUntil]))).toEqual([
      [
        [START + 1000, START + 2000],
        [START + 6000, START + 7000],
      ],
      [[START + 8000, START + 9000]],
    ]);
    expect(spans[1]?.isOpen).toBe(true);
  });

  it("is never negative, though the clocks of two machines disagree", () => {
    const steps = [ran([], 5, 3), ran([0], 1, 2)];
    for (const span of stepSpans({ created_at: at(4), ended_at: at(2), steps }, START)) {
      expect(span?.startedAt).toBeGreaterThanOrEqual(span?.readyAt ?? NaN);
      expect(span?.endedAt).toBeGreaterThanOrEqual(span?.startedAt ?? NaN);
    }
  });
});

describe("criticalPath", () => {
  const path = (steps: Step[], now = 0) =>
    criticalPath(steps, stepSpans({ created_at: at(0), ended_at: null, steps }, START + now * 1000));

  it("follows the steps that the last one had to wait for", () => {
    //  0 ── 2 ─┐        1 is slow, and 4 waits for it through 3
    //  1 ── 3 ─┴─ 4
    expect(path([ran([], 0, 1), ran([], 0, 8), ran([0], 1, 3), ran([1], 8, 9), ran([2, 3], 9, 10)])).toEqual([1, 3, 4]);
  });

  it("ends at what goes on for longest", () => {
    const running = (from: number): Step => ({ ...waits([0]), started_at: at(from), status: "PROCESSING" });
    expect(path([ran([], 0, 1), running(3), running(2), waits([1, 2])], 20)).toEqual([0, 2]);
  });

  it("is empty before anything has begun", () => {
    expect(path([waits([])])).toEqual([]);
  });
});
