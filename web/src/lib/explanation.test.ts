import { describe, expect, it } from "vitest";

import { sentence, splitBy } from "@/lib/explanation";

describe("sentence", () => {
  it("leaves out the state that stands beside it", () => {
    expect(sentence("failed: OSError: the disk is full")).toBe("OSError: the disk is full");
    expect(sentence("pending for 3 s: no worker serves queue mail")).toBe(
      "Pending for 3 s: no worker serves queue mail",
    );
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
