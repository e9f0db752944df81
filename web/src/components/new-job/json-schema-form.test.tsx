import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { expect, it } from "vitest";

import { JsonSchemaForm } from "@/components/new-job/json-schema-form";
import { schemaFields } from "@/lib/json-schema-fields";
import { EMPTY_OBJECT, writeJson } from "@/lib/lossless-json";

const FIELDS =
  schemaFields({
    type: "object",
    required: ["order", "address"],
    properties: {
      order: { type: "integer" },
      express: { type: "boolean" },
      note: { type: "string" },
      items: { type: "array", items: { type: "string" } },
      address: { type: "object", properties: { street: { type: "string" } }, required: ["street"] },
    },
  }) ?? [];

function Form({ errors = {} }: { errors?: Record<string, string> }) {
  const [value, setValue] = useState(EMPTY_OBJECT);
  return (
    <>
      <JsonSchemaForm fields={FIELDS} value={value} onChange={setValue} errors={errors} path="data" />
      <output>{writeJson(value)}</output>
    </>
  );
}

it("makes the arguments of what is filled in, with every digit, and leaves out what is empty", async () => {
  render(<Form />);
  await userEvent.type(screen.getByLabelText("order"), "9007199254740993");
  await userEvent.selectOptions(screen.getByLabelText("express (optional)"), "true");
  await userEvent.type(screen.getByLabelText("note (optional)"), "x{Backspace}");
  await userEvent.type(screen.getByLabelText("street"), "Main 1");
  await userEvent.click(screen.getByRole("button", { name: "Add to items" }));
  await userEvent.type(screen.getByLabelText("items (optional) 1"), "a");
  expect(screen.getByRole("status")).toHaveTextContent(
    '{"order":9007199254740993,"express":true,"address":{"street":"Main 1"},"items":["a"]}',
  );
});

it("shows what the server says at the field it is about", () => {
  render(<Form errors={{ "data.address.street": "is missing" }} />);
  expect(screen.getByLabelText("street")).toHaveAccessibleDescription("is missing");
});
