/** What a change changed, name by name. */

export interface Difference {
  readonly name: string;
  /** Null where it was not there. */
  readonly before: string | null;
  readonly after: string | null;
}

type Facts = Readonly<Record<string, unknown>> | null;

/** Only what is not the same before and after; names in the order in which they are told. */
export function differences(before: Facts, after: Facts): Difference[] {
  const names = new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})]);
  return [...names]
    .map((name) => ({ name, before: said(before, name), after: said(after, name) }))
    .filter((one) => one.before !== one.after);
}

function said(facts: Facts, name: string): string | null {
  if (facts === null || !(name in facts)) return null;
  const value = facts[name];
  return typeof value === "string" ? value : JSON.stringify(value);
}
