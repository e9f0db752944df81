import { screen } from "@testing-library/react";
import { expect, it } from "vitest";

import type { Overview } from "@/api/overview";
import { SummaryTiles } from "@/components/overview/summary-tiles";
import { at } from "@/test/factories";
import { renderWithRouter } from "@/test/render-with-router";

function anOverview(processing: number, slots: number): Overview {
  const counts = { completed: 0, failed: 0, dead: 0, failure_rate: null };
  return {
    at: at(0),
    stats: { PENDING: 0, SCHEDULED: 0, BLOCKED: 0, PROCESSING: processing, COMPLETED: 0, FAILED: 0, CANCELLED: 0 },
    last_5m: counts,
    workers: { alive: 1, draining: 0, dead: 0, slots, busy: slots },
    arrivals_per_second: 0,
    services_per_second: 0,
    oldest_wait_ms: null,
  } as unknown as Overview;
}

it("does not count jobs that are claimed ahead of a slot as running", async () => {
  renderWithRouter(<SummaryTiles overview={anOverview(26, 10)} />);

  expect(await screen.findByText("of 10 slots, 16 claimed ahead")).toBeVisible();
  expect(screen.getByRole("link", { name: "10" })).toBeVisible();
  expect(screen.queryByText("26")).toBeNull();
});

it("shows the number of running jobs while slots are free", async () => {
  renderWithRouter(<SummaryTiles overview={anOverview(4, 10)} />);

  expect(await screen.findByText("of 10 slots")).toBeVisible();
  expect(screen.getByRole("link", { name: "4" })).toBeVisible();
});
