/** Formats explanations and messages of the server as sentences. */

/** "failed: the disk is full" as "The disk is full"; "pending for 3 s: …" keeps its words. */
export function toSentence(explanation: string): string {
  const text = explanation.replace(/^(?:scheduled|blocked|processing|completed|failed): /, "");
  // URLs stay unchanged.
  if (/^\w+:\/\//.test(text)) return text;
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A message of the server as a full sentence. */
export function toFullSentence(message: string): string {
  const text = toSentence(message);
  return /[.?!…]$/.test(text) ? text : `${text}.`;
}
