import { describe, expect, it } from "vitest";

import { suggest, type SuggestionSource } from "@/lib/job-filter-suggestions";

const KNOWN: SuggestionSource = {
  queues: ["mail", "reports", "default"],
  tasks: ["send_mail", "report"],
  workers: ["w1-77"],
  errors: ["ValueError"],
  tags: ["welcome"],
  fields: ["user_id"],
};

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
