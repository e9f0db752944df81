/** Where to go after the login: only pages of this application. */

/** The path of `next` if it leads into this application, else its first page. */
export function safeNext(next: string | undefined): string {
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
