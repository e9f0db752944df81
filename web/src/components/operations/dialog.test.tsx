import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import type { Operation } from "@/api/operations";
import { OperationDialog, type Target } from "@/components/operations/dialog";

/** What the server was sent, and what is left of the chosen jobs by the time it looks. */
let sent: Record<string, unknown>[];
let matched: number;

function anOperation(isDry: boolean, chosen: number | null): Operation {
  return {
    id: isDry ? "dry" : "real",
    action: "cancel",
    where: {},
    chosen,
    state: "COMPLETED",
    is_dry_run: isDry,
    per_second: null,
    expected: chosen ?? 100,
    matched,
    done: isDry ? 0 : matched,
    failed: 0,
    failures: [],
    created_at: "2026-11-17T00:00:00Z",
    ended_at: "2026-11-17T00:00:01Z",
  };
}

beforeEach(() => {
  sent = [];
  matched = 2;
  vi.stubGlobal("fetch", async (request: Request) => {
    if (request.method === "POST") sent.push((await request.json()) as Record<string, unknown>);
    const isDry = request.method === "POST" ? sent.at(-1)?.dry_run === true : request.url.endsWith("/dry");
    const jobs = sent[0]?.jobs as string[] | undefined;
    return Response.json({ success: true, operation: anOperation(isDry, jobs?.length ?? null) });
  });
});
afterEach(() => vi.unstubAllGlobals());

function show(target: Target) {
  render(
    <QueryClientProvider client={new QueryClient()}>
      <OperationDialog action="cancel" target={target} onClose={() => undefined} />
    </QueryClientProvider>,
  );
}

it("counts the chosen jobs, and cancels those that still can be", async () => {
  show({ kind: "chosen", ids: ["mail:a@1", "mail:b@1", "mail:c@1"] });
  expect(await screen.findByText(/It can be done to 2 of 3 now/)).toBeVisible();
  await userEvent.click(screen.getByLabelText("Reason"));
  await userEvent.paste("too late");
  await userEvent.click(screen.getByRole("button", { name: "Cancel 2 jobs" }));

  expect(await screen.findByText(/2 jobs cancelled\. 1 of those chosen had gone/)).toBeVisible();
  expect(sent).toEqual([
    { action: "cancel", jobs: ["mail:a@1", "mail:b@1", "mail:c@1"], dry_run: true, reason: "" },
    { action: "cancel", jobs: ["mail:a@1", "mail:b@1", "mail:c@1"], dry_run: false, reason: "too late" },
  ]);
});

it("does the same to all that match", async () => {
  show({ kind: "matching", where: { queue: "mail" }, words: "queue:mail" });
  await userEvent.click(await screen.findByRole("button", { name: "Cancel 2 jobs" }));

  expect(await screen.findByText("2 jobs cancelled.")).toBeVisible();
  expect(sent.map(({ where, jobs }) => ({ where, jobs }))).toEqual([
    { where: { queue: "mail" }, jobs: undefined },
    { where: { queue: "mail" }, jobs: undefined },
  ]);
});

it("offers nothing where nothing is left to do", async () => {
  matched = 0;
  show({ kind: "chosen", ids: ["mail:a@1"] });

  expect(await screen.findByText(/It can be done to none of them now/)).toBeVisible();
  expect(screen.getByRole("button", { name: "Cancel 0 jobs" })).toBeDisabled();
});
