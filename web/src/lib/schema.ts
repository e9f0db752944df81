/** What a form has to ask for, read from the JSON Schema of a task. What is beyond it is asked for as JSON. */

import { fromValue, type Json } from "@/lib/json";

export type Shape =
  | { readonly kind: "text"; readonly format: "date" | "date-time" | null }
  | { readonly kind: "number" }
  | { readonly kind: "boolean" }
  | { readonly kind: "choice"; readonly options: readonly Json[] }
  | { readonly kind: "list"; readonly item: Shape }
  | { readonly kind: "object"; readonly fields: readonly Field[] }
  | { readonly kind: "json" };

export interface Field {
  readonly name: string;
  readonly description: string;
  readonly isRequired: boolean;
  /** May be nothing: then it is sent as null, or left out. */
  readonly isNullable: boolean;
  readonly preset: Json | null;
  readonly shape: Shape;
}

type Schema = Readonly<Record<string, unknown>>;

const MAX_DEPTH = 5;
const JSON_SHAPE: Shape = { kind: "json" };

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The arguments of a task; null where its schema says nothing that a form could ask for. */
export function fieldsOf(schema: unknown): readonly Field[] | null {
  if (!isSchema(schema)) return null;
  const shape = shapeOf(schema, schema, 0);
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

/** What a value may be besides null. */
function options(schema: Schema, root: Schema): { others: Schema[]; isNullable: boolean } {
  const given = schema.anyOf ?? schema.oneOf;
  const all = Array.isArray(given) ? given.filter(isSchema).map((one) => resolve(one, root)) : [schema];
  const others = all.filter((one) => one.type !== "null");
  return { others, isNullable: others.length < all.length };
}

function shapeOf(given: Schema, root: Schema, depth: number): Shape {
  const { others } = options(resolve(given, root), root);
  const [schema] = others;
  if (schema === undefined || others.length > 1 || depth > MAX_DEPTH) return JSON_SHAPE;
  if (Array.isArray(schema.enum)) return { kind: "choice", options: schema.enum.map(fromValue) };
  if (schema.const !== undefined) return { kind: "choice", options: [fromValue(schema.const)] };
  switch (schema.type) {
    case "string":
      return { kind: "text", format: formatOf(schema.format) };
    case "integer":
    case "number":
      return { kind: "number" };
    case "boolean":
      return { kind: "boolean" };
    case "array": {
      const { items } = schema;
      return isSchema(items) && schema.prefixItems === undefined
        ? { kind: "list", item: shapeOf(items, root, depth + 1) }
        : JSON_SHAPE;
    }
    case "object":
      return objectShape(schema, root, depth);
    default:
      return JSON_SHAPE;
  }
}

function formatOf(format: unknown): "date" | "date-time" | null {
  return format === "date" || format === "date-time" ? format : null;
}

function objectShape(schema: Schema, root: Schema, depth: number): Shape {
  const { properties } = schema;
  if (!isSchema(properties) || isSchema(schema.additionalProperties)) return JSON_SHAPE;
  const required: readonly unknown[] = Array.isArray(schema.required) ? schema.required : [];
  const fields = Object.entries(properties).map(([name, value]): Field => {
    const given = isSchema(value) ? value : {};
    const known = resolve(given, root);
    return {
      name,
      description: typeof known.description === "string" ? known.description : "",
      isRequired: required.includes(name),
      isNullable: options(known, root).isNullable,
      preset: known.default === undefined ? null : fromValue(known.default),
      shape: shapeOf(given, root, depth + 1),
    };
  });
  return { kind: "object", fields };
}
