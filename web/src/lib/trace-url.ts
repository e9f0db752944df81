/** The URL of a job's trace. */

/** Fills the template with a trace ID; null if the result is not an http(s) URL. */
export function traceUrl(template: string | null, id: string): string | null {
  if (template === null || !/^[0-9a-f]{32}$/.test(id)) return null;
  const address = template.replaceAll("{trace_id}", id);
  // The server has checked it; this guards against `javascript:` links.
  return /^https?:\/\//.test(address) ? address : null;
}
