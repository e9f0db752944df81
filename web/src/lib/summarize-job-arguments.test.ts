import { expect, it } from "vitest";

import { summarizeArguments, UNKNOWN_PARAMETERS } from "@/lib/summarize-job-arguments";

it("shows names and values, and leaves out what is null", () => {
  expect(summarizeArguments('{"to":"ada@example.com","copy":null,"urgent":true}', UNKNOWN_PARAMETERS)).toBe(
    "to ada@example.com, urgent true",
  );
});

it("shows indexed parameters first, in the order of the task", () => {
  expect(
    summarizeArguments('{"text":"Hello","customer":4711,"shop":"main"}', {
      index: ["shop", "customer"],
      positional: [],
    }),
  ).toBe("shop main, customer 4711, text Hello");
});

it("keeps every digit, and cuts long values", () => {
  expect(summarizeArguments('{"id":9007199254740993,"rate":1.10}', UNKNOWN_PARAMETERS)).toBe(
    "id 9007199254740993, rate 1.10",
  );
  expect(summarizeArguments(`{"text":"${"a".repeat(100)}"}`, UNKNOWN_PARAMETERS)).toBe(`text ${"a".repeat(60)}…`);
});

it("names positional arguments where the task is known", () => {
  const parameters = { index: [], positional: ["to", "subject"] };
  expect(summarizeArguments('["ada","Hello",7]', parameters)).toBe("to ada, subject Hello, 7");
  expect(summarizeArguments('{"*":["ada"],"urgent":true}', parameters)).toBe("to ada, urgent true");
  expect(summarizeArguments("[1,2]", UNKNOWN_PARAMETERS)).toBe("1, 2");
});

it("shows the beginning of what the server cut, and nothing for no arguments", () => {
  expect(summarizeArguments("[]", UNKNOWN_PARAMETERS)).toBe("");
  expect(summarizeArguments('{"text":"a long te', UNKNOWN_PARAMETERS)).toBe('"text":"a long te');
});
