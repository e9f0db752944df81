/** The named priorities of jobs. A smaller number is claimed earlier. */

export const PRIORITIES: readonly { readonly value: number; readonly label: string }[] = [
  { value: -15, label: "critical" },
  { value: -10, label: "high" },
  { value: -5, label: "medium" },
  { value: 0, label: "normal" },
  { value: 10, label: "low" },
];

/** "normal", or the number of a priority without a name. */
export function priorityName(priority: number): string {
  return PRIORITIES.find(({ value }) => value === priority)?.label ?? String(priority);
}

/** "0, normal". */
export function priorityLabel(priority: number): string {
  const name = priorityName(priority);
  return name === String(priority) ? name : `${priority}, ${name}`;
}
