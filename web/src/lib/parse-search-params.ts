/** Validates search params: invalid values are dropped. */

export function textParam(value: unknown, longest = 200): string | undefined {
  // The router parses "7" and "true" as number and boolean.
  const given = typeof value === "number" || typeof value === "boolean" ? String(value) : value;
  return typeof given === "string" && given !== "" && given.length <= longest ? given : undefined;
}

export function oneOfParam<V extends string>(value: unknown, options: readonly V[]): V | undefined {
  return options.find((option) => option === value);
}
