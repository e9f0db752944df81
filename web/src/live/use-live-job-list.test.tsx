import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { renderHook, waitFor } from "@testing-library/react";
import type { ReactNode } from "react";
import { afterEach, expect, test, vi } from "vitest";

import type { Filter } from "@/lib/job-filter";
import { useLiveJobList } from "@/live/use-live-job-list";

afterEach(() => vi.unstubAllGlobals());

/** Answers with one page after the other, by their cursors. */
function serve(pages: Readonly<Record<string, { jobs: readonly object[]; cursor: string | null }>>) {
  const asked: string[] = [];
  vi.stubGlobal("fetch", (request: Request) => {
    const cursor = new URL(request.url).searchParams.get("cursor") ?? "";
    asked.push(cursor);
    return Promise.resolve(Response.json({ ...pages[cursor], examined: 0 }));
  });
  return asked;
}

function show(filter: Filter) {
  const client = new QueryClient();
  const wrapper = ({ children }: { children: ReactNode }) => (
    <QueryClientProvider client={client}>{children}</QueryClientProvider>
  );
  return renderHook(() => useLiveJobList(filter, undefined), { wrapper }).result;
}

const FILTER = { state: "FAILED", task: "letters" } as const;
const TEXT = { text: "needle" } as const;

test("empty pages are gone through until a job is found, and nothing is said before", async () => {
  serve({
    "": { jobs: [], cursor: "a" },
    a: { jobs: [], cursor: "b" },
    b: { jobs: [{ jobId: "mail:7", run: "1" }], cursor: "c" },
  });

  const result = show(FILTER);

  await waitFor(() => expect(result.current.rows).toHaveLength(1));
  expect(result.current.isLoading).toBe(false);
  expect(result.current.hasMore).toBe(true);
});

test("a text that is in no record so far is looked for no further unasked", async () => {
  const asked = serve({ "": { jobs: [], cursor: "a" } });

  const result = show(TEXT);

  await waitFor(() => expect(result.current.isLoading).toBe(false));
  expect(result.current.hasMore).toBe(true);
  expect(asked).toEqual([""]);
});
