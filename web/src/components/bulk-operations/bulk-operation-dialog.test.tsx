import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import type { Operation } from "@/api/bulk-operations";
import { BulkOperationDialog, type DialogTarget } from "@/components/bulk-operations/bulk-operation-dialog";
import { anOperation, at } from "@/test/factories";

/** Requests that were sent, and the number of selected jobs that still match. */
let sent: Record<string, unknown>[];
let matched: number;

function respond(isDry: boolean, selected: number | null): Operation {
  return anOperation({
    id: isDry ? "dry" : "real",
    chosen: selected,
    is_dry_run: isDry,
    expected: selected ?? 100,
    matched,
    done: isDry ? 0 : matched,
  });
}

beforeEach(() => {
  sent = [];
  matched = 2;
  vi.stubGlobal("fetch", async (request: Request) => {
    if (request.method === "POST") sent.push((await request.json()) as Record<string, unknown>);
    const isDry = request.method === "POST" ? sent.at(-1)?.dry_run === true : request.url.endsWith("/dry");
    const jobs = sent[0]?.jobs as string[] | undefined;
    return Response.json({ operation: respond(isDry, jobs?.length ?? null) });
  });
});
afterEach(() => vi.unstubAllGlobals());

function show(target: DialogTarget) {
  render(
    <QueryClientProvider client={new QueryClient()}>
      <BulkOperationDialog action="cancel" target={target} onClose={() => undefined} />
    </QueryClientProvider>,
  );
}

it("counts the chosen jobs, and cancels those that still can be", async () => {
  show({ kind: "selected", ids: ["mail:a@1", "mail:b@1", "mail:c@1"] });
  expect(await screen.findByText(/Applies to 2 of 3 selected jobs/)).toBeVisible();
  await userEvent.click(screen.getByLabelText("Reason"));
  await userEvent.paste("too late");
  await userEvent.click(screen.getByRole("button", { name: "Cancel 2 jobs" }));

  expect(await screen.findByText(/2 jobs cancelled\. 1 selected job no longer existed/)).toBeVisible();
  expect(sent).toEqual([
    { action: "cancel", jobs: ["mail:a@1", "mail:b@1", "mail:c@1"], dry_run: true, reason: "" },
    { action: "cancel", jobs: ["mail:a@1", "mail:b@1", "mail:c@1"], dry_run: false, reason: "too late" },
  ]);
});

it("cancels all matching jobs, but none that arrived after the count", async () => {
  show({ kind: "matching", where: { queue: "mail" }, words: "queue:mail" });
  await userEvent.click(await screen.findByRole("button", { name: "Cancel 2 jobs" }));

  expect(await screen.findByText("2 jobs cancelled.")).toBeVisible();
  expect(sent.map(({ where, jobs }) => ({ where, jobs }))).toEqual([
    { where: { queue: "mail" }, jobs: undefined },
    { where: { queue: "mail", until: at(0) }, jobs: undefined },
  ]);
});

it("offers nothing where nothing is left to do", async () => {
  matched = 0;
  show({ kind: "selected", ids: ["mail:a@1"] });

  expect(await screen.findByText(/None of the selected jobs can be changed/)).toBeVisible();
  expect(screen.getByRole("button", { name: "Cancel 0 jobs" })).toBeDisabled();
});
