/** The HTTP client: the only code that fetches. Responses are typed by the OpenAPI document; errors are thrown as ApiError. */

import createClient from "openapi-fetch";

import type { components, paths } from "@/api/schema";

export type Schemas = components["schemas"];

/** The URL the application is mounted under, with a trailing slash. */
export const BASE = new URL(".", document.baseURI);

/** An error response, or a request that got no response. */
export class ApiError extends Error {
  constructor(
    message: string,
    /** 0 without a response. */
    readonly status: number,
    readonly code: string,
    readonly errors: readonly Schemas["ProblemError"][] = [],
    /** Seconds after which to retry, from Retry-After. */
    readonly retryAfterS: number | null = null,
  ) {
    super(message);
    this.name = "ApiError";
  }
}

let csrfToken: string | null = null;

/** Sets the CSRF token that is sent with every change. */
export function setCsrfToken(token: string | null): void {
  csrfToken = token;
}

const client = createClient<paths>({
  baseUrl: BASE.href.replace(/\/$/, ""),
  credentials: "same-origin",
  // Resolved at call time, so that tests can stub `fetch`.
  fetch: (request) => globalThis.fetch(request),
});

client.use({
  onRequest({ request }) {
    if (csrfToken !== null && request.method !== "GET") request.headers.set("X-CSRF-Token", csrfToken);
    return request;
  },
  async onResponse({ response }) {
    if (response.ok) return;
    throw await toApiError(response);
  },
  onError({ error }) {
    return error instanceof ApiError
      ? error
      : new ApiError("The server is not responding. Is it running?", 0, "unreachable");
  },
});

async function toApiError(response: Response): Promise<ApiError> {
  const body: unknown = await response
    .clone()
    .json()
    .catch(() => null);
  const wait = Number(response.headers.get("Retry-After") ?? Number.NaN);
  const retryAfterS = Number.isFinite(wait) ? wait : null;
  if (isProblem(body)) return new ApiError(body.detail, response.status, body.code, body.errors ?? [], retryAfterS);
  return new ApiError(
    `The server responded with ${response.status} ${response.statusText}`,
    response.status,
    "unknown",
  );
}

function isProblem(body: unknown): body is Schemas["Problem"] {
  return typeof body === "object" && body !== null && "detail" in body && "code" in body;
}

/** Returns the response body; error responses have been thrown before. */
export async function unwrap<T>(call: Promise<{ data?: T }>): Promise<NonNullable<T>> {
  const { data } = await call;
  if (data === undefined || data === null) throw new ApiError("The server returned an empty response", 502, "empty");
  return data;
}

export const api = client;
