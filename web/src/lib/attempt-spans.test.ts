import { describe, expect, it } from "vitest";

import { jobTimeline } from "@/lib/attempt-spans";
import { anAttempt, at, START } from "@/test/factories";

describe("lifeOf", () => {
  it("shows a wait before every run", () => {
    const life = jobTimeline(
      { status: "COMPLETED", enqueued_at: at(0), ended_at: at(9), attempts: [anAttempt(1, 2, 3), anAttempt(2, 8, 9)] },
      START + 60_000,
    );
    expect(
      life.spans.map((one) => [one.waitedFrom, one.waitedUntil, one.ranUntil].map((it) => (it - START) / 1000)),
    ).toEqual([
      [0, 2, 3],
      [3, 8, 9],
    ]);
    expect(life.until).toBe(START + 9000);
  });

  it("grows until now while it runs, and while it waits", () => {
    const running = jobTimeline(
      { status: "PROCESSING", enqueued_at: at(0), ended_at: null, attempts: [anAttempt(1, 1, null, "running")] },
      START + 5000,
    );
    expect(running.spans).toMatchObject([{ isOpen: true, ranUntil: START + 5000 }]);
    const waiting = jobTimeline(
      { status: "SCHEDULED", enqueued_at: at(0), ended_at: null, attempts: [anAttempt(1, 1, 2)] },
      START + 5000,
    );
    expect(waiting.spans.at(-1)).toMatchObject({
      attempt: null,
      waitedFrom: START + 2000,
      waitedUntil: START + 5000,
    });
  });

  it("is never negative, though the clocks of two machines disagree", () => {
    const life = jobTimeline(
      {
        status: "PROCESSING",
        enqueued_at: at(10),
        ended_at: null,
        attempts: [anAttempt(1, 9, 8), anAttempt(2, 7, null)],
      },
      START,
    );
    for (const one of life.spans) {
      expect(one.waitedUntil).toBeGreaterThanOrEqual(one.waitedFrom);
      expect(one.ranUntil).toBeGreaterThanOrEqual(one.waitedUntil);
    }
    expect(life.until).toBeGreaterThan(life.from);
  });

  it("has a wait and no run where a job was cancelled before it started", () => {
    const life = jobTimeline(
      { status: "CANCELLED", enqueued_at: at(0), ended_at: at(4), attempts: [] },
      START + 60_000,
    );
    expect(life.spans).toMatchObject([{ attempt: null, isOpen: false, waitedUntil: START + 4000 }]);
  });
});
