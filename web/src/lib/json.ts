/** JSON as it was written: numbers keep their digits, keys their order, so nothing is lost between the store and the eye. */

export type Json =
  | { readonly kind: "null" }
  | { readonly kind: "boolean"; readonly value: boolean }
  /** The digits as they were written: 2^53 is no limit, and 1.0 stays 1.0. */
  | { readonly kind: "number"; readonly text: string }
  | { readonly kind: "string"; readonly value: string }
  | { readonly kind: "array"; readonly items: readonly Json[] }
  | { readonly kind: "object"; readonly entries: readonly (readonly [name: string, value: Json])[] };

export const NULL: Json = { kind: "null" };
export const EMPTY_OBJECT: Json = { kind: "object", entries: [] };

export function text(value: string): Json {
  return { kind: "string", value };
}

export function number(digits: string): Json {
  return { kind: "number", text: digits };
}

/** Why a text is no JSON, and where. */
export class JsonError extends Error {
  constructor(
    message: string,
    /** The place in the text, counted from 0. */
    readonly at: number,
  ) {
    super(message);
    this.name = "JsonError";
  }
}

/** Nobody reads deeper, and a browser's stack ends somewhere. */
const MAX_DEPTH = 500;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const STRING = /"[^"\\]*(?:\\.[^"\\]*)*"/sy;
const BLANK = /[ \t\n\r]*/y;

const WORDS: readonly (readonly [word: string, value: Json])[] = [
  ["true", { kind: "boolean", value: true }],
  ["false", { kind: "boolean", value: false }],
  ["null", NULL],
];

export function isNumber(digits: string): boolean {
  NUMBER.lastIndex = 0;
  return NUMBER.exec(digits)?.[0].length === digits.length;
}

/** Reads a text. Throws a JsonError that says what is wrong and where. */
export function parseJson(source: string): Json {
  const reader = new Reader(source);
  const value = reader.value(0);
  reader.end();
  return value;
}

/** The same, or null for what is no JSON. */
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
    if (depth > MAX_DEPTH) throw new JsonError("This is nested too deeply", this.at);
    this.take(BLANK);
    const sign = this.source[this.at];
    if (sign === "{") return { kind: "object", entries: this.list("}", () => this.entry(depth)) };
    if (sign === "[") return { kind: "array", items: this.list("]", () => this.value(depth + 1)) };
    if (sign === '"') return text(this.string());
    const digits = this.take(NUMBER);
    if (digits) return number(digits);
    for (const [word, value] of WORDS) {
      if (this.source.startsWith(word, this.at)) {
        this.at += word.length;
        return value;
      }
    }
    throw new JsonError(sign === undefined ? "It ends too early" : `${quoted(sign)} is not expected here`, this.at);
  }

  end(): void {
    this.take(BLANK);
    if (this.at < this.source.length) throw new JsonError("There is more behind the value", this.at);
  }

  private entry(depth: number): readonly [string, Json] {
    this.take(BLANK);
    if (this.source[this.at] !== '"') throw new JsonError('A name in "double quotes" is expected here', this.at);
    const name = this.string();
    this.expect(":");
    return [name, this.value(depth + 1)];
  }

  private list<T>(end: string, one: () => T): T[] {
    this.at += 1;
    const found: T[] = [];
    this.take(BLANK);
    if (this.source[this.at] === end) {
      this.at += 1;
      return found;
    }
    for (;;) {
      found.push(one());
      this.take(BLANK);
      if (this.source[this.at] === end) {
        this.at += 1;
        return found;
      }
      this.expect(",", end);
    }
  }

  private string(): string {
    const literal = this.take(STRING);
    if (!literal) throw new JsonError("This text does not end", this.at);
    try {
      return JSON.parse(literal) as string;
    } catch {
      throw new JsonError("This text has a sign that must be escaped", this.at - literal.length);
    }
  }

  private expect(sign: string, other?: string): void {
    this.take(BLANK);
    if (this.source[this.at] !== sign) {
      const wanted = other === undefined ? quoted(sign) : `${quoted(sign)} or ${quoted(other)}`;
      throw new JsonError(`${wanted} is expected here`, this.at);
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

/** The value as a text: on one line, or indented as people read it. */
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

/** Indented for reading. What is no JSON stays as it is. */
export function pretty(source: string): string {
  const value = tryParseJson(source);
  return value === null ? source : writeJson(value, 2);
}

/**
 * An object as JSON, with one more member whose text goes as it was written. JavaScript's own numbers end at 2^53: what
 * is larger would arrive as another one.
 */
export function withText(object: object, name: string, text: string): string {
  const written = JSON.stringify(object).slice(0, -1);
  return `${written}${written === "{" ? "" : ","}${JSON.stringify(name)}:${text}}`;
}

/** What an object has under a name. */
export function member(value: Json, name: string): Json | undefined {
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

/** From a value of JavaScript's own: defaults and examples in a schema. */
export function fromValue(value: unknown): Json {
  return value === undefined ? NULL : parseJson(JSON.stringify(value));
}
