import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";

import { PlannerPanel } from "@/components/scaling/planner-panel";
import { PoolTiles } from "@/components/scaling/pool-tiles";
import { aScalingDecision, aScalingState } from "@/test/factories";
import { renderWithRouter } from "@/test/render-with-router";

const SETTINGS = aScalingState().settings;

it("shows who plans with which settings, who stands by, and why it decided so", async () => {
  renderWithRouter(<PlannerPanel scaling={aScalingState({ standby: ["planner-b-1", "planner-c-1"] })} />);
  const panel = within(await screen.findByRole("region", { name: "Autoscaler" }));

  expect(panel.getByText("planning")).toBeVisible();
  expect(panel.getByText("2 workers do the work of the target wait.")).toBeVisible();
  for (const [name, value] of [
    ["Planner", "a, pid 7"],
    ["Provider", "ec2"],
    ["Limits", "0 to 10 workers"],
    ["Target wait", "1 min"],
    ["Standby", "2 planners"],
  ] as const) {
    expect(panel.getByText(name).parentElement).toHaveTextContent(`${name}${value}`);
  }
});

it.each([
  ["paused", aScalingState({ settings: { ...SETTINGS, is_paused: true } })],
  ["dry run", aScalingState({ settings: { ...SETTINGS, is_dry_run: true } })],
  ["holding", aScalingState({ latest: aScalingDecision({ is_hold: true }) })],
  ["not running", aScalingState({ planner: null })],
])("says that it is %s", async (state, scaling) => {
  renderWithRouter(<PlannerPanel scaling={scaling} />);

  expect(await screen.findByText(state)).toBeVisible();
  expect(screen.queryByText("planning")).toBeNull();
});

it("marks limits that were changed at run time", async () => {
  renderWithRouter(
    <PlannerPanel scaling={aScalingState({ settings: { ...SETTINGS, max_workers: 3, changed: ["max_workers"] } })} />,
  );

  expect(await screen.findByText("changed at run time")).toBeVisible();
});

it("says in the tiles that the pool is at its maximum", async () => {
  const latest = aScalingDecision({ wanted: 10, running: 8, booting: 2, backlog: 500, oldest_wait_ms: 90_000 });
  renderWithRouter(<PoolTiles scaling={aScalingState({ latest })} />);

  expect(await screen.findByText("at the maximum of 10")).toBeVisible();
  expect(screen.getByText("1 min 30 s")).toHaveClass("text-failed");
});

it("shows no numbers before the first decision", async () => {
  renderWithRouter(<PoolTiles scaling={aScalingState({ latest: null })} />);

  expect(await screen.findAllByText("–")).toHaveLength(6);
});
