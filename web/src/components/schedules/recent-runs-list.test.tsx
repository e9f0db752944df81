import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";

import type { ScheduleRun } from "@/api/schedules";
import { RecentRunsList } from "@/components/schedules/recent-runs-list";
import { renderWithRouter } from "@/test/render-with-router";

const RUNS: readonly ScheduleRun[] = [
  {
    at: "2026-11-17T03:00:00+01:00",
    jobId: "mail:nightly-2",
    status: "FAILED",
    started_at: "2026-11-17T02:00:00Z",
    ended_at: "2026-11-17T02:00:02Z",
  },
  { at: "2026-11-16T03:00:00+01:00", jobId: "mail:nightly-1", status: null, started_at: null, ended_at: null },
];

it("shows how each run ended, with a way to its job", async () => {
  renderWithRouter(<RecentRunsList runs={RUNS} error={null} zone="own" />);
  const [failed, gone] = within(await screen.findByRole("list")).getAllByRole("listitem");

  expect(within(failed as HTMLElement).getByRole("link")).toHaveTextContent("2026-11-17 03:00:00 +01:00");
  expect(
    within(failed as HTMLElement)
      .getByRole("link")
      .getAttribute("href"),
  ).toContain("nightly-2");
  expect(failed).toHaveTextContent("failed2 s");
  expect(gone).toHaveTextContent("no job");
  expect(within(gone as HTMLElement).queryByRole("link")).toBeNull();
});

it("says that there was none yet, or why it cannot say", async () => {
  renderWithRouter(
    <>
      <RecentRunsList runs={[]} error={null} zone="own" />
      <RecentRunsList runs={undefined} error={new Error("The server is not responding")} zone="own" />
    </>,
  );
  expect(await screen.findByText("none yet")).toBeVisible();
  expect(screen.getByRole("alert")).toHaveTextContent("not responding");
});
