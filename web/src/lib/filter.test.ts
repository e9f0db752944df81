import { describe, expect, it } from "vitest";

import {
  filterOf,
  readTokens,
  suggest,
  timeOf,
  tokensOf,
  toQuery,
  toWhere,
  writeToken,
  type Known,
} from "@/lib/filter";

const NOW = Date.parse("2026-11-17T12:00:00Z");
const KNOWN: Known = {
  queues: ["mail", "reports", "default"],
  tasks: ["send_mail", "report"],
  workers: ["w1-77"],
  errors: ["ValueError"],
  tags: ["welcome"],
  fields: ["user_id"],
};

function read(typed: string) {
  return filterOf(readTokens(typed).tokens);
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
    ["state:broken", "no state “broken”"],
    ["since:yesterday", "is no time"],
  ])("%s is refused with a reason", (typed, why) => {
    expect(readTokens(typed).problem).toContain(why);
  });

  it.each([
    'state:failed queue:mail tag:"two words" field.user_id:42 "a: b"',
    "since:1h until:15min plain",
    'field.name:"" error:ValueError',
  ])("is written back so that it means the same: %s", (typed) => {
    const filter = read(typed);
    const again = tokensOf(filter).map(writeToken).join(" ");
    expect(read(again)).toEqual(filter);
  });
});

describe("times", () => {
  it("are spans before now, or dates", () => {
    expect(timeOf("1h", NOW)).toBe(NOW - 3_600_000);
    expect(timeOf("30min", NOW)).toBe(NOW - 1_800_000);
    expect(timeOf("2026-11-16T00:00:00Z", NOW)).toBe(Date.parse("2026-11-16T00:00:00Z"));
    expect(timeOf("soon", NOW)).toBeNull();
    expect(timeOf("2026-99-99", NOW)).toBeNull();
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

describe("suggestions", () => {
  function texts(typed: string) {
    return suggest(typed, KNOWN).map((one) => one.text);
  }

  it("begin with what can be asked for", () => {
    expect(texts("")).toEqual(expect.arrayContaining(["state:", "queue:", "field.user_id:"]));
  });

  it("complete a name, and then its values", () => {
    expect(texts("qu")[0]).toBe("queue:");
    expect(texts("queue:")).toEqual(["queue:mail", "queue:reports", "queue:default"]);
    expect(texts("queue:re")).toEqual(["queue:reports"]);
    expect(texts("user")[0]).toBe("field.user_id:");
  });

  it("find the value whose kind one forgot, and offer to look for the word", () => {
    expect(texts("mail")).toEqual(["queue:mail", "task:send_mail", "mail"]);
    expect(texts("fail")).toEqual(["state:failed", "fail"]);
  });
});
