/** Saves a text as a file. */
export function downloadFile(name: string, content: string, type = "application/json"): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name.replaceAll(/[^A-Za-z0-9._-]/g, "_");
  link.click();
  URL.revokeObjectURL(url);
}
