/** What a change changed, name by name. */

export interface Difference {
  readonly name: string;
  /** Null where it was not there. */
  readonly before: string | null;
  readonly after: string | null;
}

type Values = Readonly<Record<string, unknown>> | null;

/** Returns the values that differ, in the order of their names in the entry. */
export function diffValues(before: Values, after: Values): Difference[] {
  const names = new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})]);
  return [...names]
    .map((name) => ({ name, before: formatValue(before, name), after: formatValue(after, name) }))
    .filter((one) => one.before !== one.after);
}

function formatValue(facts: Values, name: string): string | null {
  if (facts === null || !(name in facts)) return null;
  const value = facts[name];
  return typeof value === "string" ? value : JSON.stringify(value);
}
