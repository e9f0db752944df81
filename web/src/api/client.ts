/** The only code that fetches. Answers are typed by the server's own document; what is refused is thrown as an ApiError. */

import createClient from "openapi-fetch";

import type { components, paths } from "@/api/schema";

export type Schemas = components["schemas"];

/** Where the application is mounted, with a slash at the end. */
export const BASE = new URL(".", document.baseURI);

/** What the server refused, or could not be asked. */
export class ApiError extends Error {
  constructor(
    message: string,
    /** 0 where there was no answer at all. */
    readonly status: number,
    readonly code: string,
    readonly errors: readonly Schemas["ProblemError"][] = [],
    /** When to try again, where the server says so. */
    readonly retryAfterS: number | null = null,
  ) {
    super(message);
    this.name = "ApiError";
  }
}

let csrf: string | null = null;

/** What belongs into the header of every change. */
export function setCsrf(token: string | null): void {
  csrf = token;
}

const client = createClient<paths>({
  baseUrl: BASE.href.replace(/\/$/, ""),
  credentials: "same-origin",
  // Looked up at the time of the call, so that tests can stub the network's edge.
  fetch: (request) => globalThis.fetch(request),
});

client.use({
  onRequest({ request }) {
    if (csrf !== null && request.method !== "GET") request.headers.set("X-CSRF-Token", csrf);
    return request;
  },
  async onResponse({ response }) {
    if (response.ok) return;
    throw await refusal(response);
  },
  onError({ error }) {
    return error instanceof ApiError
      ? error
      : new ApiError("The server does not answer. Is it running?", 0, "unreachable");
  },
});

async function refusal(response: Response): Promise<ApiError> {
  const body: unknown = await response
    .clone()
    .json()
    .catch(() => null);
  const wait = Number(response.headers.get("Retry-After") ?? Number.NaN);
  const retryAfterS = Number.isFinite(wait) ? wait : null;
  if (isProblem(body)) return new ApiError(body.message, response.status, body.code, body.errors ?? [], retryAfterS);
  return new ApiError(`The server answered ${response.status} ${response.statusText}`, response.status, "unknown");
}

function isProblem(body: unknown): body is Schemas["Problem"] {
  return typeof body === "object" && body !== null && "message" in body && "code" in body;
}

/** The answer of a call. Refusals have been thrown before. */
export async function answer<T>(call: Promise<{ data?: T }>): Promise<NonNullable<T>> {
  const { data } = await call;
  if (data === undefined || data === null) throw new ApiError("The server's answer was empty", 502, "empty");
  return data;
}

export const api = client;
