import { describe, expect, it } from "vitest";

import { jsonNumber } from "@/lib/lossless-json";
import { draftForTask, draftFromJob, firstDataError, toNewJob, toNamedArguments } from "@/lib/new-job-draft";
import { aJob, aTask } from "@/test/factories";

describe("toNewJob", () => {
  it("leaves out what is empty", () => {
    const { type, ...others }: Record<string, unknown> = toNewJob(draftForTask("send"));
    expect(type).toBe("send");
    expect(Object.values(others).filter((value) => value !== undefined)).toEqual([]);
  });

  it("reads numbers, and sends what is no number for the server to reject", () => {
    const draft = { ...draftForTask("send"), priority: "-5", timeout: "1,5", attempts: "many" };
    expect(toNewJob(draft)).toMatchObject({ priority: -5, timeout: 1.5, attempts: "many" });
  });

  it("sends the chosen start only", () => {
    const typed = { ...draftForTask("send"), delay: "10", run_at: "2026-12-24T18:00:00" };
    expect(toNewJob({ ...typed, start: "now" })).toMatchObject({ delay: undefined, run_at: undefined });
    expect(toNewJob({ ...typed, start: "delay" })).toMatchObject({ delay: 10, run_at: undefined });
    expect(toNewJob({ ...typed, start: "run_at" }).run_at).toBe(new Date(typed.run_at).toISOString());
  });
});

it("copies a job", () => {
  const job = aJob.failed({ type: "send", tags: ["a", "b"], priority: -5, lock: "account:7" });
  expect(toNewJob(draftFromJob(job))).toMatchObject({
    type: "send",
    tags: ["a", "b"],
    priority: -5,
    lock: "account:7",
  });
});

it("names positional arguments, unless there are more than parameters", () => {
  const task = aTask({ positional: ["to"] });
  const one = { kind: "array", items: [jsonNumber("1")] } as const;
  const two = { kind: "array", items: [jsonNumber("1"), jsonNumber("2")] } as const;
  expect(toNamedArguments(one, task)).toEqual({ kind: "object", entries: [["to", jsonNumber("1")]] });
  expect(toNamedArguments(two, task)).toBe(two);
});

it("finds the first error of the arguments", () => {
  expect(firstDataError({ delay: "too small", "data.to": "is missing" })).toBe("to: is missing");
  expect(firstDataError({ delay: "too small" })).toBeNull();
});
