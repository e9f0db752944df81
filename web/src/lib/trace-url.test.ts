import { expect, it } from "vitest";

import { traceUrl } from "@/lib/trace-url";

const ID = "4bf92f3577b34da6a3ce929d0e0e4736";

it("puts the id wherever the template asks for it", () => {
  expect(traceUrl("https://tracing.example/{trace_id}?at={trace_id}", ID)).toBe(
    `https://tracing.example/${ID}?at=${ID}`,
  );
});

it("makes no link without a template, of what is no id, and none that runs in the page", () => {
  expect(traceUrl(null, ID)).toBeNull();
  expect(traceUrl("https://tracing.example/{trace_id}", "../../evil")).toBeNull();
  expect(traceUrl("javascript:alert('{trace_id}')", ID)).toBeNull();
});
