import { describe, expect, it } from "vitest";

import { toFilter, parseFilter, parseTime, toTokens, toQuery, toWhere, formatToken } from "@/lib/job-filter";

const NOW = Date.parse("2026-11-17T12:00:00Z");
function read(typed: string) {
  return toFilter(parseFilter(typed).tokens);
}

describe("what is typed", () => {
  it("becomes a filter", () => {
    expect(read("state:failed queue:mail task:send_mail tag:a worker:w1 error:ValueError since:1h")).toEqual({
      state: "FAILED",
      queue: "mail",
      task: "send_mail",
      tag: "a",
      worker: "w1",
      error: "ValueError",
      since: "1h",
    });
  });

  it("takes words without a name as a text to look for", () => {
    expect(read("out of memory")).toEqual({ text: "out of memory" });
    expect(read('queue:mail "exit code: 7"')).toEqual({ queue: "mail", text: "exit code: 7" });
    expect(read("http://example.com")).toEqual({ text: "http://example.com" });
  });

  it("takes several fields of the payload, and the later of two that are the same", () => {
    expect(read("field.user_id:42 field.shop:Main queue:a queue:b")).toEqual({
      field: ["user_id=42", "shop=Main"],
      queue: "b",
    });
  });

  it("keeps quotes and blanks in values", () => {
    expect(read('tag:"a \\"b\\" c"')).toEqual({ tag: 'a "b" c' });
  });

  it.each([
    ["state:broken", "Unknown state “broken”"],
    ["since:yesterday", "is not a time"],
  ])("%s is refused with a reason", (typed, why) => {
    expect(parseFilter(typed).problem).toContain(why);
  });

  it.each([
    'state:failed queue:mail tag:"two words" field.user_id:42 "a: b"',
    "since:1h until:15min plain",
    'field.name:"" error:ValueError',
  ])("is written back so that it means the same: %s", (typed) => {
    const filter = read(typed);
    const again = toTokens(filter).map(formatToken).join(" ");
    expect(read(again)).toEqual(filter);
  });
});

describe("times", () => {
  it("are spans before now, or dates", () => {
    expect(parseTime("1h", NOW)).toBe(NOW - 3_600_000);
    expect(parseTime("30min", NOW)).toBe(NOW - 1_800_000);
    expect(parseTime("2026-11-16T00:00:00Z", NOW)).toBe(Date.parse("2026-11-16T00:00:00Z"));
    expect(parseTime("soon", NOW)).toBeNull();
    expect(parseTime("2026-99-99", NOW)).toBeNull();
  });
});

describe("for the server", () => {
  it("a task is a type and a span a moment", () => {
    expect(toQuery({ task: "report", since: "1h" }, NOW)).toMatchObject({
      type: "report",
      since: "2026-11-17T11:00:00.000Z",
    });
  });

  it("values of fields are what they look like, as in a URL, with every digit", () => {
    expect(toWhere({ field: ["a=42", "b=true", "c=x=y", 'd="7"', "e=9007199254740993"] }, NOW).fields).toBe(
      '{"a":42,"b":true,"c":"x=y","d":"7","e":9007199254740993}',
    );
  });
});
