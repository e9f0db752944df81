/** Where the trace of a job is looked at. */

/** The address that a template makes of an id; null where that would be no plain link to another page. */
export function traceAddress(template: string | null, id: string): string | null {
  if (template === null || !/^[0-9a-f]{32}$/.test(id)) return null;
  const address = template.replaceAll("{trace_id}", id);
  // The server has checked it; a link that runs in this page is worth looking twice.
  return /^https?:\/\//.test(address) ? address : null;
}
