/** The sentence that says why something is where it is, to stand beside a badge that names the state. */

/** "failed: the disk is full" as "The disk is full"; "pending for 3 s: …" keeps its words. */
export function sentence(explanation: string): string {
  const said = explanation.replace(/^(?:scheduled|blocked|processing|completed|failed): /, "");
  // An address stays as it is written.
  if (/^\w+:\/\//.test(said)) return said;
  return said.charAt(0).toUpperCase() + said.slice(1);
}

/** What the server says, as a sentence that stands by itself. */
export function fullSentence(message: string): string {
  const said = sentence(message);
  return /[.?!…]$/.test(said) ? said : `${said}.`;
}

/** A text in pieces, those that are one of the names marked: where a sentence speaks of something that has a page. */
export function splitBy(text: string, names: readonly string[]): readonly { text: string; isName: boolean }[] {
  const known = [...new Set(names.filter((name) => name !== ""))].sort((a, b) => b.length - a.length);
  if (known.length === 0) return [{ text, isName: false }];
  const pattern = new RegExp(`(${known.map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})`);
  return text
    .split(pattern)
    .map((piece, place) => ({ text: piece, isName: place % 2 === 1 }))
    .filter((piece) => piece.text !== "");
}
