import { describe, expect, it } from "vitest";

import { ApiError } from "@/api/client";
import { placeComplaints } from "@/lib/misplaced";
import { fieldsOf } from "@/lib/schema";

const ADDRESS = {
  type: "object",
  properties: { street: { type: "string" }, country: { enum: ["DE", "FR"], default: "DE" } },
  required: ["street"],
};

function shapes(properties: Record<string, unknown>, more: object = {}) {
  const schema = { $ref: "#/$defs/args", $defs: { args: { type: "object", properties }, ...more } };
  return Object.fromEntries((fieldsOf(schema) ?? []).map((field) => [field.name, field.shape.kind]));
}

describe("a schema", () => {
  it("becomes the fields of a form", () => {
    expect(
      shapes(
        {
          name: { type: "string" },
          copies: { type: "integer" },
          express: { type: "boolean" },
          on: { anyOf: [{ type: "string", format: "date" }, { type: "null" }] },
          address: { $ref: "#/$defs/Address" },
          items: { type: "array", items: { type: "string" } },
          size: { enum: ["small", "large"] },
        },
        { Address: ADDRESS },
      ),
    ).toEqual({
      name: "text",
      copies: "number",
      express: "boolean",
      on: "text",
      address: "object",
      items: "list",
      size: "choice",
    });
  });

  it("asks for JSON where a form cannot ask", () => {
    expect(
      shapes({
        either: { anyOf: [{ type: "string" }, { type: "integer" }] },
        pair: { type: "array", prefixItems: [{ type: "string" }] },
        table: { type: "object", additionalProperties: { type: "integer" } },
        anything: {},
      }),
    ).toEqual({ either: "json", pair: "json", table: "json", anything: "json" });
  });

  it("that contains itself ends somewhere", () => {
    expect(
      shapes(
        { tree: { $ref: "#/$defs/Tree" } },
        { Tree: { type: "object", properties: { child: { $ref: "#/$defs/Tree" } } } },
      ),
    ).toEqual({
      tree: "object",
    });
  });

  it("may say nothing", () => {
    expect(fieldsOf(null)).toBeNull();
    expect(fieldsOf({})).toBeNull();
  });
});

describe("a complaint", () => {
  const options = new Set(["delay", "data", "dependencies", "priority"]);

  it.each([
    ["task 'ship': data: missing 'address'", { "data.address": "is missing" }],
    ["task 'ship': data.address: missing 'street'", { "data.address.street": "is missing" }],
    ["task 'ship': data.address.street: must be string", { "data.address.street": "must be string" }],
    ["task 'ship': data: items[1]: must be string", { "data.items.1": "must be string" }],
    ["delay: give delay or run_at, not both", { delay: "give delay or run_at, not both" }],
    ["dependencies: job default:x does not exist", { dependencies: "job default:x does not exist" }],
    ["the store is full: make room", { "": "the store is full: make room" }],
  ])("finds its field: %s", (message, expected) => {
    expect(placeComplaints(new ApiError(message, 422, "invalid"), options)).toEqual(expected);
  });

  it("of several fields is shown at each", () => {
    const error = new ApiError("many", 422, "invalid", [
      { source: "body", field: "priority.constrained-int", message: "too large" },
      { source: "body", field: "delay", message: "too small" },
    ]);
    expect(placeComplaints(error, options)).toEqual({ priority: "too large", delay: "too small" });
  });
});
