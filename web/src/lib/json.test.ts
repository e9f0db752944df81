import { describe, expect, it } from "vitest";

import { fromValue, isNumber, JsonError, member, parseJson, pretty, withMember, withText, writeJson } from "@/lib/json";

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
    ["", 0, "ends too early"],
    ['{"a" 1}', 5, "“:” is expected"],
    ["[1, 2", 5, "“,” or “]”"],
    ["[1,]", 3, "not expected"],
    ["{'a': 1}", 1, "double quotes"],
    ["01", 1, "more behind"],
    ['"open', 0, "does not end"],
    ['["a\n"]', 1, "must be escaped"],
    ["nul", 0, "not expected"],
    ["NaN", 0, "not expected"],
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
    expect(pretty('{"a":[1,{}],"b":[]}')).toBe('{\n  "a": [\n    1,\n    {}\n  ],\n  "b": []\n}');
  });

  it("leaves alone what is no JSON", () => {
    expect(pretty("{oops")).toBe("{oops");
  });
});

describe("objects", () => {
  it("change, gain and lose a member, and keep their order", () => {
    const value = parseJson('{"a":1,"b":2}');
    expect(writeJson(withMember(value, "a", fromValue("x")))).toBe('{"a":"x","b":2}');
    expect(writeJson(withMember(value, "c", fromValue([3])))).toBe('{"a":1,"b":2,"c":[3]}');
    expect(writeJson(withMember(value, "a", undefined))).toBe('{"b":2}');
    expect(member(value, "b")).toEqual({ kind: "number", text: "2" });
  });
});

it("adds a text to an object with every digit", () => {
  expect(withText({ type: "pay" }, "data", "[9007199254740993]")).toBe('{"type":"pay","data":[9007199254740993]}');
  expect(withText({}, "data", "1e400")).toBe('{"data":1e400}');
});

it("knows a number by its digits", () => {
  expect(["1", "-1.5e3", "0"].map(isNumber)).toEqual([true, true, true]);
  expect(["", "1.", "+1", "0x1", "1 "].map(isNumber)).toEqual([false, false, false, false, false]);
});
