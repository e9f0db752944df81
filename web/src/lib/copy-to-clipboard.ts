/** Copies a text. The clipboard API is not available over plain HTTP; there the deprecated command is used. */
export async function copyToClipboard(text: string): Promise<void> {
  if (window.isSecureContext) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "fixed opacity-0";
  document.body.append(area);
  area.select();
  // The only way without a secure context.
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  document.execCommand("copy");
  area.remove();
}
