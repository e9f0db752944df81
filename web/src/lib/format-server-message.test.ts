import { describe, expect, it } from "vitest";

import { toFullSentence, toSentence } from "@/lib/format-server-message";

describe("toSentence", () => {
  it("leaves out the state that stands beside it", () => {
    expect(toSentence("failed: OSError: the disk is full")).toBe("OSError: the disk is full");
    expect(toSentence("pending for 3 s: no worker serves queue mail")).toBe(
      "Pending for 3 s: no worker serves queue mail",
    );
  });
});

describe("toFullSentence", () => {
  it("leaves an address as it is written", () => {
    expect(toFullSentence("redis://127.0.0.1:6379 does not answer")).toBe("redis://127.0.0.1:6379 does not answer.");
  });

  it("has a capital and one full stop", () => {
    expect(toFullSentence("this token is for queue mail alone")).toBe("This token is for queue mail alone.");
    expect(toFullSentence("The server is not responding. Is it running?")).toBe(
      "The server is not responding. Is it running?",
    );
    expect(toFullSentence("Requires the admin role.")).toBe("Requires the admin role.");
  });
});
