/** Suggestions of the filter bar for what has been typed. */

import { JOB_STATES, JOB_STATE_STYLES } from "@/lib/job-and-workflow-states";
import { FIELD_PREFIX, FILTER_KEYS, formatToken, isKey, parseState, type FilterKey } from "@/lib/job-filter";

/** The known values to suggest from. */
export interface SuggestionSource {
  readonly queues: readonly string[];
  readonly tasks: readonly string[];
  readonly workers: readonly string[];
  readonly errors: readonly string[];
  readonly tags: readonly string[];
  readonly fields: readonly string[];
}

export interface Suggestion {
  /** The text in the bar after it is selected. */
  readonly text: string;
  readonly hint: string;
  /** A complete token; otherwise a value must follow. */
  readonly isComplete: boolean;
}

const MAX_SUGGESTIONS = 12;
const TIMES: readonly string[] = ["15min", "1h", "6h", "1d", "7d"];

function knownValues(key: FilterKey, known: SuggestionSource): readonly string[] {
  switch (key) {
    case "state":
      return JOB_STATES.map((state) => JOB_STATE_STYLES[state].label);
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
  if (key === "state") return JOB_STATE_STYLES[parseState(value) ?? "PENDING"].meaning;
  return key === "since" || key === "until" ? "ago" : "";
}

/** Suggestions for the text typed so far. */
export function suggest(typed: string, known: SuggestionSource): Suggestion[] {
  const fragment = typed.trimStart();
  const colon = fragment.indexOf(":");
  const key = fragment.slice(0, colon).toLowerCase();
  if (colon > 0 && isKey(key)) return suggestValues(key, fragment.slice(colon + 1).replace(/^"/, ""), known);
  if (colon > 0) return [];
  const names: Suggestion[] = Object.entries(FILTER_KEYS)
    .filter(([name]) => name.startsWith(fragment.toLowerCase()) && (fragment !== "" || name !== "group"))
    .map(([name, hint]) => ({ text: `${name}:`, hint, isComplete: false }));
  const fields = known.fields
    .filter((name) => name.startsWith(fragment) || `${FIELD_PREFIX}${name}`.startsWith(fragment))
    .map((name) => ({ text: `${FIELD_PREFIX}${name}:`, hint: "indexed argument", isComplete: false }));
  if (fragment === "") return [...names, ...fields].slice(0, MAX_SUGGESTIONS);
  const values = (["state", "queue", "task", "error", "tag", "worker"] as const).flatMap((one) =>
    suggestValues(one, fragment, known).slice(0, 3),
  );
  const words = {
    text: formatToken({ key: "text", value: fragment.trimEnd() }),
    hint: "text anywhere in the record",
    isComplete: true,
  };
  return [...names, ...fields, ...values].slice(0, MAX_SUGGESTIONS - 1).concat(words);
}

function suggestValues(key: FilterKey, start: string, known: SuggestionSource): Suggestion[] {
  const wanted = start.toLowerCase();
  const found = knownValues(key, known).filter((value) => value.toLowerCase().includes(wanted));
  const first = found.filter((value) => value.toLowerCase().startsWith(wanted));
  return [...new Set([...first, ...found])]
    .slice(0, MAX_SUGGESTIONS)
    .map((value) => ({ text: formatToken({ key, value }), hint: hintOf(key, value), isComplete: true }));
}
