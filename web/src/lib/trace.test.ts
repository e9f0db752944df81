import { expect, it } from "vitest";

import { traceAddress } from "@/lib/trace";

const ID = "4bf92f3577b34da6a3ce929d0e0e4736";

it("puts the id wherever the template asks for it", () => {
  expect(traceAddress("https://tracing.example/{trace_id}?at={trace_id}", ID)).toBe(
    `https://tracing.example/${ID}?at=${ID}`,
  );
});

it("makes no link without a template, of what is no id, and none that runs in the page", () => {
  expect(traceAddress(null, ID)).toBeNull();
  expect(traceAddress("https://tracing.example/{trace_id}", "../../evil")).toBeNull();
  expect(traceAddress("javascript:alert('{trace_id}')", ID)).toBeNull();
});
