/** Colours and cursor moves for terminals: a page shows the text alone. */
// eslint-disable-next-line no-control-regex
const ESCAPES = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g;

export function withoutAnsi(text: string): string {
  return text.replace(ESCAPES, "");
}
