import { describe, expect, it } from "vitest";

import { schemaFields } from "@/lib/json-schema-fields";

const ADDRESS = {
  type: "object",
  properties: { street: { type: "string" }, country: { enum: ["DE", "FR"], default: "DE" } },
  required: ["street"],
};

function shapes(properties: Record<string, unknown>, more: object = {}) {
  const schema = { $ref: "#/$defs/args", $defs: { args: { type: "object", properties }, ...more } };
  return Object.fromEntries((schemaFields(schema) ?? []).map((field) => [field.name, field.type.kind]));
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
    expect(schemaFields(null)).toBeNull();
    expect(schemaFields({})).toBeNull();
  });
});
