/** Splits a text at the given names, so that they can be shown as links. */
export function splitByNames(text: string, names: readonly string[]): readonly { text: string; isName: boolean }[] {
  const known = [...new Set(names.filter((name) => name !== ""))].sort((a, b) => b.length - a.length);
  if (known.length === 0) return [{ text, isName: false }];
  const pattern = new RegExp(`(${known.map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})`);
  return text
    .split(pattern)
    .map((piece, place) => ({ text: piece, isName: place % 2 === 1 }))
    .filter((piece) => piece.text !== "");
}
