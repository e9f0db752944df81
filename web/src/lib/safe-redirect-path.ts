/** The path to open after the login: only pages of this application. */

/** Returns the path of `next` if it belongs to this application, otherwise "/". */
export function safeRedirectPath(next: string | undefined): string {
  if (next?.startsWith("/") !== true) return "/";
  try {
    // A browser reads "//host" and "/\host" as another host; so does this.
    const url = new URL(next, window.location.origin);
    if (url.origin !== window.location.origin || url.pathname === "/login") return "/";
    return `${url.pathname}${url.search}${url.hash}`;
  } catch {
    return "/";
  }
}
