import { render, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import { DecisionList } from "@/components/scaling/decision-list";
import { aScalingDecision } from "@/test/factories";

it("shows each decision with its reason, its figures and the machines", () => {
  render(
    <DecisionList
      decisions={[
        aScalingDecision({
          wanted: 5,
          running: 3,
          booting: 2,
          backlog: 120,
          oldest_wait_ms: 4000,
          reasons: ["120 jobs wait.", "Replacing 1: i-9 failed."],
          launched: ["i-1", "i-2", "i-3", "i-4", "i-5", "i-6"],
        }),
      ]}
    />,
  );
  const [decision] = screen.getAllByRole("listitem");

  expect(decision).toHaveTextContent("+6 launched");
  expect(decision).toHaveTextContent("120 jobs wait.");
  expect(decision).toHaveTextContent("Replacing 1: i-9 failed.");
  expect(decision).toHaveTextContent("5 wanted: 3 running, 2 booting; 120 pending, oldest wait 4 s");
  expect(decision).toHaveTextContent("launched i-1, i-2, i-3, i-4, i-5 and 1 more");
});

it("says why nothing was done", () => {
  render(
    <DecisionList
      decisions={[
        aScalingDecision({ id: "3", is_hold: true, reasons: ["Holding: the provider failed."] }),
        aScalingDecision({ id: "2", is_paused: true }),
        aScalingDecision({ id: "1", is_dry_run: true }),
        aScalingDecision({ id: "0" }),
      ]}
    />,
  );
  const rows = screen.getAllByRole("listitem").map((row) => row.textContent);

  expect(rows[0]).toContain("hold");
  expect(rows[1]).toContain("paused");
  expect(rows[2]).toContain("dry run");
  expect(rows[3]).toContain("no change");
});

it("folds decisions that changed nothing, with their reasons", async () => {
  const quiet = ["5", "4", "3"].map((id) => aScalingDecision({ id, reasons: [`reason ${id}`] }));
  render(<DecisionList decisions={[...quiet, aScalingDecision({ id: "2", drained: ["i-1"] })]} />);
  expect(screen.getByText("reason 5")).toBeVisible();
  expect(screen.getByText("reason 4")).not.toBeVisible();

  await userEvent.click(screen.getByText(/^2 earlier decisions without a change/));

  const earlier = within(screen.getByRole("list", { name: "Earlier decisions" }));
  expect(earlier.getAllByRole("listitem").map((row) => row.textContent)).toEqual([
    expect.stringContaining("reason 4"),
    expect.stringContaining("reason 3"),
  ]);
});
