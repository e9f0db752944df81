/** Assigns the errors of a refused request to the fields of a form. */

import { ApiError } from "@/api/http-client";

/** Message by field: "delay", "data.address.street". Errors that belong to no field are under "". */
export type FieldErrors = Readonly<Record<string, string>>;

/** `fields` are the names of the form's fields. Errors inside "data" keep their whole path, of the others the first part. */
export function fieldErrors(error: unknown, fields: ReadonlySet<string>): FieldErrors {
  if (!(error instanceof ApiError)) return { "": error instanceof Error ? error.message : "The request failed" };
  if (error.errors.length === 0) return { "": error.message };
  const located = error.errors.map(({ field, message }): [string, string] => {
    const name = field.split(".", 1)[0] ?? "";
    if (!fields.has(name)) return ["", field === "" ? message : `${field}: ${message}`];
    return [name === "data" ? field : name, message];
  });
  return Object.fromEntries(located.reverse()); // of several errors of a field, the first is shown
}
