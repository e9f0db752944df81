import { describe, expect, it } from "vitest";

import type { JobAttempt } from "@/api/job";
import { lifeOf } from "@/lib/attempts";

const START = Date.parse("2026-01-01T00:00:00Z");
const at = (seconds: number) => new Date(START + seconds * 1000).toISOString();

function anAttempt(
  number: number,
  from: number,
  until: number | null,
  outcome: JobAttempt["outcome"] = "failed",
): JobAttempt {
  return {
    attempt: number,
    worker: "w",
    started_at: at(from),
    ended_at: until === null ? null : at(until),
    outcome,
    note: null,
  };
}

describe("lifeOf", () => {
  it("shows a wait before every run", () => {
    const life = lifeOf(
      { status: "COMPLETED", enqueued_at: at(0), ended_at: at(9), attempts: [anAttempt(1, 2, 3), anAttempt(2, 8, 9)] },
      START + 60_000,
    );
    expect(
      life.stretches.map((one) => [one.waitedFrom, one.waitedUntil, one.ranUntil].map((it) => (it - START) / 1000)),
    ).toEqual([
      [0, 2, 3],
      [3, 8, 9],
    ]);
    expect(life.until).toBe(START + 9000);
  });

  it("grows until now while it runs, and while it waits", () => {
    const running = lifeOf(
      { status: "PROCESSING", enqueued_at: at(0), ended_at: null, attempts: [anAttempt(1, 1, null, "running")] },
      START + 5000,
    );
    expect(running.stretches).toMatchObject([{ isOpen: true, ranUntil: START + 5000 }]);
    const waiting = lifeOf(
      { status: "SCHEDULED", enqueued_at: at(0), ended_at: null, attempts: [anAttempt(1, 1, 2)] },
      START + 5000,
    );
    expect(waiting.stretches.at(-1)).toMatchObject({
      attempt: null,
      waitedFrom: START + 2000,
      waitedUntil: START + 5000,
    });
  });

  it("is never negative, though the clocks of two machines disagree", () => {
    const life = lifeOf(
      {
        status: "PROCESSING",
        enqueued_at: at(10),
        ended_at: null,
        attempts: [anAttempt(1, 9, 8), anAttempt(2, 7, null)],
      },
      START,
    );
    for (const one of life.stretches) {
      expect(one.waitedUntil).toBeGreaterThanOrEqual(one.waitedFrom);
      expect(one.ranUntil).toBeGreaterThanOrEqual(one.waitedUntil);
    }
    expect(life.until).toBeGreaterThan(life.from);
  });

  it("has a wait and no run where a job was cancelled before it started", () => {
    const life = lifeOf({ status: "CANCELLED", enqueued_at: at(0), ended_at: at(4), attempts: [] }, START + 60_000);
    expect(life.stretches).toMatchObject([{ attempt: null, isOpen: false, waitedUntil: START + 4000 }]);
  });
});
