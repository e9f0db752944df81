/** The language of the filter bar: `state:failed queue:mail field.user_id:42 since:1h "out of memory"`. */

import { tryParseJson } from "@/lib/json";
import { JOB_STATES, JOB_TONES, type JobState } from "@/lib/states";

/** Which jobs are meant: all that is given must be true of them. */
export interface Filter {
  readonly state?: JobState;
  readonly queue?: string;
  readonly task?: string;
  readonly tag?: string;
  readonly worker?: string;
  readonly error?: string;
  /** Of dead letters that failed alike. */
  readonly group?: string;
  /** name=value, of parameters that the task declared as index. */
  readonly field?: readonly string[];
  /** "1h", "30min", "2d", or a date. */
  readonly since?: string;
  readonly until?: string;
  readonly text?: string;
}

export const FILTER_KEYS = {
  state: "where it stands",
  queue: "its queue",
  task: "what it runs",
  tag: "one of its tags",
  worker: "who has or had it",
  error: "class of its last error",
  since: "1h, 2d, 2026-12-24",
  until: "1h, 2d, 2026-12-24",
  group: "dead letters that failed alike",
} as const;

export type FilterKey = keyof typeof FILTER_KEYS;

/** One condition, as it stands in the bar. */
export interface Token {
  readonly key: FilterKey | `field.${string}` | "text";
  readonly value: string;
}

const FIELD = "field.";
const PIECE = /(?:([A-Za-z]+|field\.[\w.-]+):)?(?:"((?:[^"\\]|\\.)*)"|(\S+))/g;

function isKey(name: string): name is FilterKey {
  return Object.hasOwn(FILTER_KEYS, name);
}

/** What somebody typed, as conditions; `problem` says what makes no sense. */
export function readTokens(typed: string): { tokens: Token[]; problem: string | null } {
  const tokens: Token[] = [];
  const words: string[] = [];
  let problem: string | null = null;
  for (const [whole, name = "", quoted, plain] of typed.matchAll(PIECE)) {
    const key = name.startsWith(FIELD) ? (name as Token["key"]) : name.toLowerCase();
    const value = quoted === undefined ? (plain ?? "") : quoted.replaceAll(/\\(.)/g, "$1");
    if (key.startsWith(FIELD)) tokens.push({ key: key as Token["key"], value });
    else if (isKey(key)) {
      problem ??= problemOf(key, value);
      tokens.push({ key, value: key === "state" ? value.toLowerCase() : value });
    } else words.push(name === "" ? value : whole);
  }
  if (words.length > 0) tokens.push({ key: "text", value: words.join(" ") });
  return { tokens, problem };
}

function problemOf(key: FilterKey, value: string): string | null {
  if (key === "state" && stateOf(value) === undefined) return `There is no state “${value}”`;
  if ((key === "since" || key === "until") && timeOf(value, 0) === null)
    return `“${value}” is no time: write 1h, 30min, 2d, or 2026-12-24`;
  return null;
}

function stateOf(value: string): JobState | undefined {
  return JOB_STATES.find((state) => JOB_TONES[state].label === value.toLowerCase());
}

/** As it is typed: what has blanks is quoted. */
export function writeToken({ key, value }: Token): string {
  const isPlain = value !== "" && !/[\s"]/.test(value) && !(key === "text" && value.includes(":"));
  const written = isPlain ? value : `"${value.replaceAll(/["\\]/g, "\\$&")}"`;
  return key === "text" ? written : `${key}:${written}`;
}

/** The conditions of a filter, in the order of the bar. */
export function tokensOf(filter: Filter): Token[] {
  const tokens: Token[] = [];
  for (const key of Object.keys(FILTER_KEYS) as FilterKey[]) {
    const value = filter[key];
    if (value !== undefined) tokens.push({ key, value: key === "state" ? value.toLowerCase() : value });
  }
  for (const pair of filter.field ?? []) {
    const [name, value] = splitPair(pair);
    tokens.push({ key: `${FIELD}${name}`, value });
  }
  if (filter.text !== undefined) tokens.push({ key: "text", value: filter.text });
  return tokens;
}

/** The filter that conditions make; of two about the same thing the later counts, but fields add up. */
export function filterOf(tokens: readonly Token[]): Filter {
  const filter: Record<string, string> = {};
  const fields = new Map<string, string>();
  for (const { key, value } of tokens) {
    if (key.startsWith(FIELD)) fields.set(key.slice(FIELD.length), value);
    else if (key === "state") filter.state = stateOf(value) ?? "";
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

const SPANS: Readonly<Record<string, number>> = {
  s: 1000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
};

/** The moment that "1h" (ago) or a date means, in ms; null for nonsense. */
export function timeOf(value: string, now: number): number | null {
  const [, amount, unit] = /^(\d{1,6})(s|m|min|h|d|w)$/.exec(value) ?? [];
  if (amount !== undefined && unit !== undefined) return now - Number(amount) * (SPANS[unit] ?? 0);
  const at = /^\d{4}-\d{2}-\d{2}/.test(value) ? Date.parse(value) : NaN;
  return Number.isNaN(at) ? null : at;
}

function moment(value: string | undefined, now: number): string | undefined {
  const at = value === undefined ? null : timeOf(value, now);
  return at === null ? undefined : new Date(at).toISOString();
}

/** As `GET /api/jobs` takes it. */
export function toQuery({ field, ...filter }: Filter, now: number) {
  return { ...common(filter, now), field: field === undefined ? undefined : [...field] };
}

/** As an operation takes it; values of fields as the text of a JSON object, with every digit. */
export function toWhere({ field, ...filter }: Filter, now: number) {
  const pairs = (field ?? []).map(splitPair).map(([name, value]) => `${JSON.stringify(name)}:${literal(value)}`);
  return { ...common(filter, now), fields: pairs.length > 0 ? `{${pairs.join(",")}}` : undefined };
}

function common({ task, since, until, ...same }: Omit<Filter, "field">, now: number) {
  return { ...same, type: task, since: moment(since, now), until: moment(until, now) };
}

/** The server reads a value in a URL the same way: what looks like no other value is a text. */
function literal(value: string): string {
  return tryParseJson(value) === null ? JSON.stringify(value) : value;
}

/** What the bar can propose. */
export interface Known {
  readonly queues: readonly string[];
  readonly tasks: readonly string[];
  readonly workers: readonly string[];
  readonly errors: readonly string[];
  readonly tags: readonly string[];
  readonly fields: readonly string[];
}

export interface Suggestion {
  /** What stands in the bar once it is chosen. */
  readonly text: string;
  readonly hint: string;
  /** A whole condition; else a value is still to come. */
  readonly isWhole: boolean;
}

const MAX_SUGGESTIONS = 12;
const TIMES: readonly string[] = ["15min", "1h", "6h", "1d", "7d"];

function valuesOf(key: FilterKey, known: Known): readonly string[] {
  switch (key) {
    case "state":
      return JOB_STATES.map((state) => JOB_TONES[state].label);
    case "queue":
      return known.queues;
    case "task":
      return known.tasks;
    case "tag":
      return known.tags;
    case "worker":
      return known.workers;
    case "error":
      return known.errors;
    case "since":
    case "until":
      return TIMES;
    case "group":
      return [];
  }
}

function hintOf(key: FilterKey, value: string): string {
  if (key === "state") return JOB_TONES[stateOf(value) ?? "PENDING"].meaning;
  return key === "since" || key === "until" ? "ago" : "";
}

/** What may be meant by what was typed so far. */
export function suggest(typed: string, known: Known): Suggestion[] {
  const fragment = typed.trimStart();
  const colon = fragment.indexOf(":");
  const key = fragment.slice(0, colon).toLowerCase();
  if (colon > 0 && isKey(key)) return valuesFor(key, fragment.slice(colon + 1).replace(/^"/, ""), known);
  if (colon > 0) return [];
  const names: Suggestion[] = Object.entries(FILTER_KEYS)
    .filter(([name]) => name.startsWith(fragment.toLowerCase()) && (fragment !== "" || name !== "group"))
    .map(([name, hint]) => ({ text: `${name}:`, hint, isWhole: false }));
  const fields = known.fields
    .filter((name) => name.startsWith(fragment) || `${FIELD}${name}`.startsWith(fragment))
    .map((name) => ({ text: `${FIELD}${name}:`, hint: "a value of the payload", isWhole: false }));
  if (fragment === "") return [...names, ...fields].slice(0, MAX_SUGGESTIONS);
  const values = (["state", "queue", "task", "error", "tag", "worker"] as const).flatMap((one) =>
    valuesFor(one, fragment, known).slice(0, 3),
  );
  const words = {
    text: writeToken({ key: "text", value: fragment.trimEnd() }),
    hint: "anywhere in the record",
    isWhole: true,
  };
  return [...names, ...fields, ...values].slice(0, MAX_SUGGESTIONS - 1).concat(words);
}

function valuesFor(key: FilterKey, start: string, known: Known): Suggestion[] {
  const wanted = start.toLowerCase();
  const found = valuesOf(key, known).filter((value) => value.toLowerCase().includes(wanted));
  const first = found.filter((value) => value.toLowerCase().startsWith(wanted));
  return [...new Set([...first, ...found])]
    .slice(0, MAX_SUGGESTIONS)
    .map((value) => ({ text: writeToken({ key, value }), hint: hintOf(key, value), isWhole: true }));
}
