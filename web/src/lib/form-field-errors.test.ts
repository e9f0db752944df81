import { describe, expect, it } from "vitest";

import { ApiError } from "@/api/http-client";
import { fieldErrors } from "@/lib/form-field-errors";

const FIELDS = new Set(["delay", "data", "dependencies", "priority", "tags"]);

function refused(...errors: (readonly [field: string, message: string])[]): ApiError {
  const entries = errors.map(([field, message]) => ({ source: "body", field, message }));
  return new ApiError("the message as a whole", 422, "invalid", entries);
}

describe("fieldErrors", () => {
  it.each([
    ["data.address", "data.address"],
    ["data.address.street", "data.address.street"],
    ["data.items.1", "data.items.1"],
    ["data", "data"],
    ["delay", "delay"],
    ["dependencies.0.job", "dependencies"],
    ["tags.1", "tags"],
  ])("assigns an error of %s to %s", (field, expected) => {
    expect(fieldErrors(refused([field, "is wrong"]), FIELDS)).toEqual({ [expected]: "is wrong" });
  });

  it("names the field of an error that the form has no field for", () => {
    expect(fieldErrors(refused(["meta", "is too large"]), FIELDS)).toEqual({ "": "meta: is too large" });
    expect(fieldErrors(refused(["", "is not an object"]), FIELDS)).toEqual({ "": "is not an object" });
  });

  it("assigns each of several errors, and shows the first of a field", () => {
    const error = refused(["priority", "is too large"], ["delay", "is too small"], ["priority", "is no name"]);
    expect(fieldErrors(error, FIELDS)).toEqual({ priority: "is too large", delay: "is too small" });
  });

  it("does not look for fields in the message", () => {
    const error = new ApiError("delay: data.address: the store is full", 507, "store_full");
    expect(fieldErrors(error, FIELDS)).toEqual({ "": "delay: data.address: the store is full" });
  });
});
