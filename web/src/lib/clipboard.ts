/** Copies a text. Browsers hide the clipboard from pages over plain HTTP: there the old way still works. */
export async function copyText(text: string): Promise<void> {
  if (window.isSecureContext) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "fixed opacity-0";
  document.body.append(area);
  area.select();
  // Deprecated, and the only way there.
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  document.execCommand("copy");
  area.remove();
}
