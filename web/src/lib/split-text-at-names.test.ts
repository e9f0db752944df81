import { describe, expect, it } from "vitest";

import { splitByNames } from "@/lib/split-text-at-names";

describe("splitByNames", () => {
  it("marks every name, the longest that fits", () => {
    expect(splitByNames("waits for a:1@2, a:1", ["a:1", "a:1@2"])).toEqual([
      { text: "waits for ", isName: false },
      { text: "a:1@2", isName: true },
      { text: ", ", isName: false },
      { text: "a:1", isName: true },
    ]);
  });

  it("takes names as they are", () => {
    expect(splitByNames("(x) .*", [".*"])).toEqual([
      { text: "(x) ", isName: false },
      { text: ".*", isName: true },
    ]);
    expect(splitByNames("all", [])).toEqual([{ text: "all", isName: false }]);
  });
});
