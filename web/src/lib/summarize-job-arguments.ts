/** The arguments of a job on one line: the indexed parameters first, because people search and recognise jobs by them. */

import { writeJson, tryParseJson, type Json } from "@/lib/lossless-json";

/** Longer values are cut: a cell shows a line. */
const MAX_VALUE = 60;

/** What a task says about its parameters. */
export interface TaskParameters {
  /** The indexed ones. */
  readonly index: readonly string[];
  /** Names of arguments that are stored as an array. */
  readonly positional: readonly string[];
}

export const UNKNOWN_PARAMETERS: TaskParameters = { index: [], positional: [] };

/** Positional arguments that are stored beside named ones. */
const POSITIONAL_MEMBER = "*";

/** "customer 4711, amount 12.50". `data` is JSON text, and may have been cut by the server. */
export function summarizeArguments(data: string, { index, positional }: TaskParameters): string {
  const value = tryParseJson(data);
  // Cut in the middle: the beginning is still worth showing.
  if (value === null) return data.replace(/^[{[]/, "").slice(0, 200);
  const named = nameArguments(value, positional).filter(([, one]) => one.kind !== "null");
  const rank = (name: string) => (index.includes(name) ? index.indexOf(name) : index.length);
  return named
    .toSorted(([one], [other]) => rank(one) - rank(other))
    .map(([name, one]) => (name === "" ? formatValue(one) : `${name} ${formatValue(one)}`))
    .join(", ");
}

/** Arguments with their names; "" if a name is unknown. */
function nameArguments(value: Json, positional: readonly string[]): (readonly [name: string, value: Json])[] {
  if (value.kind === "array") return value.items.map((item, place) => [positional[place] ?? "", item]);
  if (value.kind !== "object") return [["", value]];
  return value.entries.flatMap(([name, one]) =>
    name === POSITIONAL_MEMBER ? nameArguments(one, positional) : [[name, one] as const],
  );
}

function formatValue(value: Json): string {
  const text = value.kind === "string" ? value.value : writeJson(value);
  const line = text.replaceAll(/\s+/g, " ");
  return line.length > MAX_VALUE ? `${line.slice(0, MAX_VALUE)}…` : line;
}
