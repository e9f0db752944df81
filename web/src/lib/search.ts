/** What a URL says, if it makes sense: the rest is dropped. */

export function text(value: unknown, longest = 200): string | undefined {
  // The router reads "7" and "true" as what they look like.
  const said = typeof value === "number" || typeof value === "boolean" ? String(value) : value;
  return typeof said === "string" && said !== "" && said.length <= longest ? said : undefined;
}

export function oneOf<V extends string>(value: unknown, options: readonly V[]): V | undefined {
  return options.find((option) => option === value);
}
