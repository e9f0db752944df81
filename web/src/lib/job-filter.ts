/** Parses and formats the job filter: `state:failed queue:mail field.user_id:42 since:1h "out of memory"`. */

import { JOB_STATES, JOB_STATE_STYLES, type JobState } from "@/lib/job-and-workflow-states";
import { tryParseJson } from "@/lib/lossless-json";

/** A job matches if all given conditions hold. */
export interface Filter {
  readonly state?: JobState;
  readonly queue?: string;
  readonly task?: string;
  readonly tag?: string;
  readonly worker?: string;
  readonly error?: string;
  /** Group of dead letters with the same error. */
  readonly group?: string;
  /** name=value of indexed parameters. */
  readonly field?: readonly string[];
  /** "1h", "30min", "2d", or a date. */
  readonly since?: string;
  readonly until?: string;
  readonly text?: string;
}

export const FILTER_KEYS = {
  state: "job state",
  queue: "queue name",
  task: "task name",
  tag: "tag",
  worker: "current or last worker",
  error: "type of the last error",
  since: "1h, 2d, 2026-12-24",
  until: "1h, 2d, 2026-12-24",
  group: "dead letters with the same error",
} as const;

export type FilterKey = keyof typeof FILTER_KEYS;

/** One condition in the filter bar. */
export interface Token {
  readonly key: FilterKey | `field.${string}` | "text";
  readonly value: string;
}

export const FIELD_PREFIX = "field.";
const TOKEN_PATTERN = /(?:([A-Za-z]+|field\.[\w.-]+):)?(?:"((?:[^"\\]|\\.)*)"|(\S+))/g;

export function isKey(name: string): name is FilterKey {
  return Object.hasOwn(FILTER_KEYS, name);
}

/** Parses the typed filter; `problem` is the first error. */
export function parseFilter(typed: string): { tokens: Token[]; problem: string | null } {
  const tokens: Token[] = [];
  const words: string[] = [];
  let problem: string | null = null;
  for (const [whole, name = "", quoted, plain] of typed.matchAll(TOKEN_PATTERN)) {
    const key = name.startsWith(FIELD_PREFIX) ? (name as Token["key"]) : name.toLowerCase();
    const value = quoted === undefined ? (plain ?? "") : quoted.replaceAll(/\\(.)/g, "$1");
    if (key.startsWith(FIELD_PREFIX)) tokens.push({ key: key as Token["key"], value });
    else if (isKey(key)) {
      problem ??= findProblem(key, value);
      tokens.push({ key, value: key === "state" ? value.toLowerCase() : value });
    } else words.push(name === "" ? value : whole);
  }
  if (words.length > 0) tokens.push({ key: "text", value: words.join(" ") });
  return { tokens, problem };
}

function findProblem(key: FilterKey, value: string): string | null {
  if (key === "state" && parseState(value) === undefined) return `Unknown state “${value}”`;
  if ((key === "since" || key === "until") && parseTime(value, 0) === null)
    return `“${value}” is not a time: use 1h, 30min, 2d, or 2026-12-24`;
  return null;
}

export function parseState(value: string): JobState | undefined {
  return JOB_STATES.find((state) => JOB_STATE_STYLES[state].label === value.toLowerCase());
}

/** Formats a token as it is typed; quotes values with spaces. */
export function formatToken({ key, value }: Token): string {
  const isPlain = value !== "" && !/[\s"]/.test(value) && !(key === "text" && value.includes(":"));
  const written = isPlain ? value : `"${value.replaceAll(/["\\]/g, "\\$&")}"`;
  return key === "text" ? written : `${key}:${written}`;
}

/** The conditions of a filter, in the order of the bar. */
export function toTokens(filter: Filter): Token[] {
  const tokens: Token[] = [];
  for (const key of Object.keys(FILTER_KEYS) as FilterKey[]) {
    const value = filter[key];
    if (value !== undefined) tokens.push({ key, value: key === "state" ? value.toLowerCase() : value });
  }
  for (const pair of filter.field ?? []) {
    const [name, value] = splitPair(pair);
    tokens.push({ key: `${FIELD_PREFIX}${name}`, value });
  }
  if (filter.text !== undefined) tokens.push({ key: "text", value: filter.text });
  return tokens;
}

/** Combines tokens into a filter. Of two tokens with the same key the later one counts; fields add up. */
export function toFilter(tokens: readonly Token[]): Filter {
  const filter: Record<string, string> = {};
  const fields = new Map<string, string>();
  for (const { key, value } of tokens) {
    if (key.startsWith(FIELD_PREFIX)) fields.set(key.slice(FIELD_PREFIX.length), value);
    else if (key === "state") filter.state = parseState(value) ?? "";
    else filter[key] = value;
  }
  const given = Object.entries(filter).filter(([, value]) => value !== "");
  const field = [...fields].map(([name, value]) => `${name}=${value}`);
  return { ...Object.fromEntries(given), ...(field.length > 0 ? { field } : {}) };
}

function splitPair(pair: string): [name: string, value: string] {
  const sign = pair.indexOf("=");
  return sign < 0 ? [pair, ""] : [pair.slice(0, sign), pair.slice(sign + 1)];
}

const UNIT_MS: Readonly<Record<string, number>> = {
  s: 1000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
};

/** Parses "1h" (ago) or a date, in ms; null if invalid. */
export function parseTime(value: string, now: number): number | null {
  const [, amount, unit] = /^(\d{1,6})(s|m|min|h|d|w)$/.exec(value) ?? [];
  if (amount !== undefined && unit !== undefined) return now - Number(amount) * (UNIT_MS[unit] ?? 0);
  const at = /^\d{4}-\d{2}-\d{2}/.test(value) ? Date.parse(value) : NaN;
  return Number.isNaN(at) ? null : at;
}

function toIsoTime(value: string | undefined, now: number): string | undefined {
  const at = value === undefined ? null : parseTime(value, now);
  return at === null ? undefined : new Date(at).toISOString();
}

/** The query parameters of `GET /api/jobs`. */
export function toQuery({ field, ...filter }: Filter, now: number) {
  return { ...commonParams(filter, now), field: field === undefined ? undefined : [...field] };
}

/** The filter of a bulk operation; field values as JSON text, so that numbers keep their digits. */
export function toWhere({ field, ...filter }: Filter, now: number) {
  const pairs = (field ?? []).map(splitPair).map(([name, value]) => `${JSON.stringify(name)}:${toJsonLiteral(value)}`);
  return { ...commonParams(filter, now), fields: pairs.length > 0 ? `{${pairs.join(",")}}` : undefined };
}

function commonParams({ task, since, until, ...same }: Omit<Filter, "field">, now: number) {
  return { ...same, type: task, since: toIsoTime(since, now), until: toIsoTime(until, now) };
}

/** As the server parses a value in a URL: what is not JSON is a string. */
function toJsonLiteral(value: string): string {
  return tryParseJson(value) === null ? JSON.stringify(value) : value;
}
