import { describe, expect, it } from "vitest";

import { fullSentence, sentence, splitBy } from "@/lib/explanation";

describe("sentence", () => {
  it("leaves out the state that stands beside it", () => {
    expect(sentence("failed: OSError: the disk is full")).toBe("OSError: the disk is full");
    expect(sentence("pending for 3 s: no worker serves queue mail")).toBe(
      "Pending for 3 s: no worker serves queue mail",
    );
  });
});

describe("fullSentence", () => {
  it("leaves an address as it is written", () => {
    expect(fullSentence("redis://127.0.0.1:6379 does not answer")).toBe("redis://127.0.0.1:6379 does not answer.");
  });

  it("has a capital and one full stop", () => {
    expect(fullSentence("this token is for queue mail alone")).toBe("This token is for queue mail alone.");
    expect(fullSentence("The server does not answer. Is it running?")).toBe(
      "The server does not answer. Is it running?",
    );
    expect(fullSentence("The audit log is for admins.")).toBe("The audit log is for admins.");
  });
});

describe("splitBy", () => {
  it("marks every name, the longest that fits", () => {
    expect(splitBy("waits for a:1@2, a:1", ["a:1", "a:1@2"])).toEqual([
      { text: "waits for ", isName: false },
      { text: "a:1@2", isName: true },
      { text: ", ", isName: false },
      { text: "a:1", isName: true },
    ]);
  });

  it("takes names as they are", () => {
    expect(splitBy("(x) .*", [".*"])).toEqual([
      { text: "(x) ", isName: false },
      { text: ".*", isName: true },
    ]);
    expect(splitBy("all", [])).toEqual([{ text: "all", isName: false }]);
  });
});
