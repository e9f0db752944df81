import { expect, it } from "vitest";

import { operationTarget } from "@/lib/operation-target";
import { anOperation } from "@/test/factories";

it("is a filter of the jobs page", () => {
  const operation = anOperation({ where: { state: "failed", queue: "mail", task: "send", until: "1791000000000" } });

  expect(operationTarget(operation)).toMatchObject({
    words: "state:failed queue:mail task:send",
    search: { state: "FAILED", queue: "mail", task: "send" },
  });
});

it("has no filter for jobs that were selected one by one", () => {
  expect(operationTarget(anOperation({ chosen: 3 }))).toEqual({ words: "3 selected jobs", search: null });
});
