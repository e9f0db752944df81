/** The form fields of a task, derived from its JSON Schema. Values a form cannot express are edited as JSON. */

import { toJson, type Json } from "@/lib/lossless-json";

export type FieldType =
  | { readonly kind: "text"; readonly format: "date" | "date-time" | null }
  | { readonly kind: "number" }
  | { readonly kind: "boolean" }
  | { readonly kind: "choice"; readonly options: readonly Json[] }
  | { readonly kind: "list"; readonly item: FieldType }
  | { readonly kind: "object"; readonly fields: readonly Field[] }
  | { readonly kind: "json" };

export interface Field {
  readonly name: string;
  readonly description: string;
  readonly isRequired: boolean;
  /** May be null: then it is sent as null, or left out. */
  readonly isNullable: boolean;
  readonly defaultValue: Json | null;
  readonly type: FieldType;
}

type Schema = Readonly<Record<string, unknown>>;

const MAX_DEPTH = 5;
const JSON_TYPE: FieldType = { kind: "json" };

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The arguments of a task; null where its schema cannot be shown as a form. */
export function schemaFields(schema: unknown): readonly Field[] | null {
  if (!isSchema(schema)) return null;
  const shape = fieldType(schema, schema, 0);
  return shape.kind === "object" ? shape.fields : null;
}

function resolve(schema: Schema, root: Schema): Schema {
  const reference = schema.$ref;
  if (typeof reference !== "string" || !reference.startsWith("#/")) return schema;
  let found: unknown = root;
  for (const part of reference.slice(2).split("/")) found = isSchema(found) ? found[part] : undefined;
  return isSchema(found) ? { ...found, ...withoutRef(schema) } : {};
}

function withoutRef({ $ref: _ref, $defs: _defs, ...rest }: Schema): Schema {
  return rest;
}

/** The types of a value besides null. */
function options(schema: Schema, root: Schema): { others: Schema[]; isNullable: boolean } {
  const given = schema.anyOf ?? schema.oneOf;
  const all = Array.isArray(given) ? given.filter(isSchema).map((one) => resolve(one, root)) : [schema];
  const others = all.filter((one) => one.type !== "null");
  return { others, isNullable: others.length < all.length };
}

function fieldType(given: Schema, root: Schema, depth: number): FieldType {
  const { others } = options(resolve(given, root), root);
  const [schema] = others;
  if (schema === undefined || others.length > 1 || depth > MAX_DEPTH) return JSON_TYPE;
  if (Array.isArray(schema.enum)) return { kind: "choice", options: schema.enum.map(toJson) };
  if (schema.const !== undefined) return { kind: "choice", options: [toJson(schema.const)] };
  switch (schema.type) {
    case "string":
      return { kind: "text", format: dateFormat(schema.format) };
    case "integer":
    case "number":
      return { kind: "number" };
    case "boolean":
      return { kind: "boolean" };
    case "array": {
      const { items } = schema;
      return isSchema(items) && schema.prefixItems === undefined
        ? { kind: "list", item: fieldType(items, root, depth + 1) }
        : JSON_TYPE;
    }
    case "object":
      return objectType(schema, root, depth);
    default:
      return JSON_TYPE;
  }
}

function dateFormat(format: unknown): "date" | "date-time" | null {
  return format === "date" || format === "date-time" ? format : null;
}

function objectType(schema: Schema, root: Schema, depth: number): FieldType {
  const { properties } = schema;
  if (!isSchema(properties) || isSchema(schema.additionalProperties)) return JSON_TYPE;
  const required: readonly unknown[] = Array.isArray(schema.required) ? schema.required : [];
  const fields = Object.entries(properties).map(([name, value]): Field => {
    const given = isSchema(value) ? value : {};
    const known = resolve(given, root);
    return {
      name,
      description: typeof known.description === "string" ? known.description : "",
      isRequired: required.includes(name),
      isNullable: options(known, root).isNullable,
      defaultValue: known.default === undefined ? null : toJson(known.default),
      type: fieldType(given, root, depth + 1),
    };
  });
  return { kind: "object", fields };
}
