/** Parses and writes JSON without loss: numbers keep their digits, objects the order of their keys. */

export type Json =
  | { readonly kind: "null" }
  | { readonly kind: "boolean"; readonly value: boolean }
  /** The original digits: beyond 2^53, and 1.0 stays 1.0. */
  | { readonly kind: "number"; readonly text: string }
  | { readonly kind: "string"; readonly value: string }
  | { readonly kind: "array"; readonly items: readonly Json[] }
  | { readonly kind: "object"; readonly entries: readonly (readonly [name: string, value: Json])[] };

export const NULL: Json = { kind: "null" };
export const EMPTY_OBJECT: Json = { kind: "object", entries: [] };

export function jsonString(value: string): Json {
  return { kind: "string", value };
}

export function jsonNumber(digits: string): Json {
  return { kind: "number", text: digits };
}

/** The reason and the position of a syntax error. */
export class JsonError extends Error {
  constructor(
    message: string,
    /** Offset in the text, from 0. */
    readonly at: number,
  ) {
    super(message);
    this.name = "JsonError";
  }
}

/** Limit of nesting: deeper values would overflow the stack. */
const MAX_DEPTH = 500;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const STRING = /"[^"\\]*(?:\\.[^"\\]*)*"/sy;
const WHITESPACE = /[ \t\n\r]*/y;

const LITERALS: readonly (readonly [word: string, value: Json])[] = [
  ["true", { kind: "boolean", value: true }],
  ["false", { kind: "boolean", value: false }],
  ["null", NULL],
];

export function isJsonNumber(digits: string): boolean {
  NUMBER.lastIndex = 0;
  return NUMBER.exec(digits)?.[0].length === digits.length;
}

/** Parses a text. Throws a JsonError with the reason and the position. */
export function parseJson(source: string): Json {
  const reader = new Reader(source);
  const value = reader.value(0);
  reader.end();
  return value;
}

/** Like parseJson, but returns null for invalid JSON. */
export function tryParseJson(source: string): Json | null {
  try {
    return parseJson(source);
  } catch {
    return null;
  }
}

class Reader {
  private at = 0;

  constructor(private readonly source: string) {}

  value(depth: number): Json {
    if (depth > MAX_DEPTH) throw new JsonError("Nested too deeply", this.at);
    this.take(WHITESPACE);
    const sign = this.source[this.at];
    if (sign === "{") return { kind: "object", entries: this.list("}", () => this.entry(depth)) };
    if (sign === "[") return { kind: "array", items: this.list("]", () => this.value(depth + 1)) };
    if (sign === '"') return jsonString(this.string());
    const digits = this.take(NUMBER);
    if (digits) return jsonNumber(digits);
    for (const [word, value] of LITERALS) {
      if (this.source.startsWith(word, this.at)) {
        this.at += word.length;
        return value;
      }
    }
    throw new JsonError(sign === undefined ? "Unexpected end of input" : `Unexpected ${quoted(sign)}`, this.at);
  }

  end(): void {
    this.take(WHITESPACE);
    if (this.at < this.source.length) throw new JsonError("Unexpected text after the value", this.at);
  }

  private entry(depth: number): readonly [string, Json] {
    this.take(WHITESPACE);
    if (this.source[this.at] !== '"') throw new JsonError("Expected a name in double quotes", this.at);
    const name = this.string();
    this.expect(":");
    return [name, this.value(depth + 1)];
  }

  private list<T>(end: string, one: () => T): T[] {
    this.at += 1;
    const found: T[] = [];
    this.take(WHITESPACE);
    if (this.source[this.at] === end) {
      this.at += 1;
      return found;
    }
    for (;;) {
      found.push(one());
      this.take(WHITESPACE);
      if (this.source[this.at] === end) {
        this.at += 1;
        return found;
      }
      this.expect(",", end);
    }
  }

  private string(): string {
    const literal = this.take(STRING);
    if (!literal) throw new JsonError("Unterminated string", this.at);
    try {
      return JSON.parse(literal) as string;
    } catch {
      throw new JsonError("The string contains a character that must be escaped", this.at - literal.length);
    }
  }

  private expect(sign: string, other?: string): void {
    this.take(WHITESPACE);
    if (this.source[this.at] !== sign) {
      const wanted = other === undefined ? quoted(sign) : `${quoted(sign)} or ${quoted(other)}`;
      throw new JsonError(`Expected ${wanted}`, this.at);
    }
    this.at += 1;
  }

  private take(pattern: RegExp): string {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.source)?.[0] ?? "";
    this.at += found.length;
    return found;
  }
}

function quoted(sign: string): string {
  return `“${sign}”`;
}

/** Writes a value on one line, or indented. */
export function writeJson(value: Json, indent = 0): string {
  return write(value, indent, "");
}

function write(value: Json, indent: number, margin: string): string {
  switch (value.kind) {
    case "null":
      return "null";
    case "boolean":
      return String(value.value);
    case "number":
      return value.text;
    case "string":
      return JSON.stringify(value.value);
    case "array":
      return enclose(
        "[]",
        value.items.map((item) => (inner: string) => write(item, indent, inner)),
        indent,
        margin,
      );
    case "object":
      return enclose(
        "{}",
        value.entries.map(
          ([name, one]) =>
            (inner: string) =>
              `${JSON.stringify(name)}:${indent ? " " : ""}${write(one, indent, inner)}`,
        ),
        indent,
        margin,
      );
  }
}

function enclose(
  brackets: string,
  parts: readonly ((margin: string) => string)[],
  indent: number,
  margin: string,
): string {
  const [open, close] = [brackets.charAt(0), brackets.charAt(1)];
  if (parts.length === 0) return brackets;
  if (indent === 0) return open + parts.map((part) => part("")).join(",") + close;
  const inner = margin + " ".repeat(indent);
  return `${open}\n${parts.map((part) => inner + part(inner)).join(",\n")}\n${margin}${close}`;
}

/** Indents JSON. Invalid JSON is returned unchanged. */
export function prettyJson(source: string): string {
  const value = tryParseJson(source);
  return value === null ? source : writeJson(value, 2);
}

/**
 * Writes an object as JSON with one more member, given as JSON text. JavaScript rounds numbers beyond 2^53; the text
 * keeps them exact.
 */
export function withRawMember(object: object, name: string, text: string): string {
  const written = JSON.stringify(object).slice(0, -1);
  return `${written}${written === "{" ? "" : ","}${JSON.stringify(name)}:${text}}`;
}

/** Returns a member of an object. */
export function getMember(value: Json, name: string): Json | undefined {
  if (value.kind !== "object") return undefined;
  return value.entries.findLast(([key]) => key === name)?.[1];
}

/** An object with one entry changed, added, or (undefined) removed. */
export function withMember(value: Json, name: string, changed: Json | undefined): Json {
  const entries = value.kind === "object" ? value.entries : [];
  if (changed === undefined) return { kind: "object", entries: entries.filter(([key]) => key !== name) };
  if (!entries.some(([key]) => key === name)) return { kind: "object", entries: [...entries, [name, changed]] };
  return { kind: "object", entries: entries.map((entry) => (entry[0] === name ? [name, changed] : entry)) };
}

/** Converts a JavaScript value: defaults and examples in a schema. */
export function toJson(value: unknown): Json {
  return value === undefined ? NULL : parseJson(JSON.stringify(value));
}
