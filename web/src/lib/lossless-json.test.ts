import { describe, expect, it } from "vitest";

import {
  toJson,
  isJsonNumber,
  JsonError,
  getMember,
  parseJson,
  prettyJson,
  withMember,
  withRawMember,
  writeJson,
} from "@/lib/lossless-json";

describe("parseJson", () => {
  it.each([
    "9007199254740993",
    "-0.10",
    "1e400",
    '{"b":1,"a":2,"10":3,"2":4}',
    '{"a":1,"a":2}',
    "[[],{},[null,true,false]]",
    '"\\u00e9 \\n \\" \\/"',
    '{"__proto__":{"x":1}}',
  ])("gives %s back as it was", (source) => {
    expect(writeJson(parseJson(source))).toBe(source.replace("\\u00e9", "é").replace("\\/", "/"));
  });

  it.each([
    ["", 0, "Unexpected end"],
    ['{"a" 1}', 5, "Expected “:”"],
    ["[1, 2", 5, "“,” or “]”"],
    ["[1,]", 3, "Unexpected"],
    ["{'a': 1}", 1, "double quotes"],
    ["01", 1, "Unexpected text after"],
    ['"open', 0, "Unterminated"],
    ['["a\n"]', 1, "must be escaped"],
    ["nul", 0, "Unexpected"],
    ["NaN", 0, "Unexpected"],
  ])("says where %j goes wrong", (source, at, message) => {
    let error: unknown;
    try {
      parseJson(source);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(JsonError);
    expect((error as JsonError).at).toBe(at);
    expect((error as JsonError).message).toContain(message);
  });

  it("refuses what is nested too deeply, instead of breaking", () => {
    expect(() => parseJson("[".repeat(100_000))).toThrow("too deeply");
  });

  it("reads a large text in one go", () => {
    const source = JSON.stringify(Array.from({ length: 20_000 }, (_, id) => ({ id, name: `n${id}` })));
    expect(writeJson(parseJson(source))).toBe(source);
  });
});

describe("writing", () => {
  it("indents for reading", () => {
    expect(prettyJson('{"a":[1,{}],"b":[]}')).toBe('{\n  "a": [\n    1,\n    {}\n  ],\n  "b": []\n}');
  });

  it("leaves alone what is no JSON", () => {
    expect(prettyJson("{oops")).toBe("{oops");
  });
});

describe("objects", () => {
  it("change, gain and lose a member, and keep their order", () => {
    const value = parseJson('{"a":1,"b":2}');
    expect(writeJson(withMember(value, "a", toJson("x")))).toBe('{"a":"x","b":2}');
    expect(writeJson(withMember(value, "c", toJson([3])))).toBe('{"a":1,"b":2,"c":[3]}');
    expect(writeJson(withMember(value, "a", undefined))).toBe('{"b":2}');
    expect(getMember(value, "b")).toEqual({ kind: "number", text: "2" });
  });
});

it("adds a text to an object with every digit", () => {
  expect(withRawMember({ type: "pay" }, "data", "[9007199254740993]")).toBe('{"type":"pay","data":[9007199254740993]}');
  expect(withRawMember({}, "data", "1e400")).toBe('{"data":1e400}');
});

it("knows a number by its digits", () => {
  expect(["1", "-1.5e3", "0"].map(isJsonNumber)).toEqual([true, true, true]);
  expect(["", "1.", "+1", "0x1", "1 "].map(isJsonNumber)).toEqual([false, false, false, false, false]);
});
