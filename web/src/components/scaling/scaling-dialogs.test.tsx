import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";

import type { ScalingDryRun } from "@/api/scaling";
import { ChangeLimitsDialog } from "@/components/scaling/change-limits-dialog";
import { DryRunDialog } from "@/components/scaling/preview-decision-dialog";
import { aScalingDecision, aScalingState } from "@/test/factories";

const SETTINGS = aScalingState().settings;
const IDLE = { isBusy: false, error: null, onClose: () => undefined };

function aDryRun(fields: Partial<ScalingDryRun> = {}): ScalingDryRun {
  return {
    planner: "planner-a-1",
    policy: "drain-time",
    min_workers: 0,
    max_workers: 10,
    target_wait_ms: 60_000,
    decision: aScalingDecision({ is_dry_run: true }),
    launch: 0,
    drain: 0,
    replace: 0,
    ...fields,
  };
}

it("changes the limits, and refuses a maximum below the minimum", async () => {
  const onChange = vi.fn();
  render(<ChangeLimitsDialog {...IDLE} settings={SETTINGS} onChange={onChange} />);
  const min = screen.getByLabelText("Min workers");
  await userEvent.clear(min);
  await userEvent.type(min, "20");
  expect(screen.getByRole("button", { name: "Change limits" })).toBeDisabled();
  expect(screen.getByText("Less than the minimum")).toBeVisible();

  await userEvent.clear(min);
  await userEvent.type(min, "2");
  await userEvent.click(screen.getByRole("button", { name: "Change limits" }));

  expect(onChange).toHaveBeenCalledExactlyOnceWith({ min_workers: 2, max_workers: 10 });
});

it("restores the limits that the autoscaler was started with, only if they were changed", async () => {
  const onChange = vi.fn();
  const { rerender } = render(<ChangeLimitsDialog {...IDLE} settings={SETTINGS} onChange={onChange} />);
  expect(screen.queryByRole("button", { name: "Restore start values" })).toBeNull();

  rerender(<ChangeLimitsDialog {...IDLE} settings={{ ...SETTINGS, changed: ["max_workers"] }} onChange={onChange} />);
  await userEvent.click(screen.getByRole("button", { name: "Restore start values" }));

  expect(onChange).toHaveBeenCalledExactlyOnceWith({ min_workers: null, max_workers: null });
});

it("shows why a change was refused", () => {
  render(<ChangeLimitsDialog {...IDLE} error={new Error("not allowed")} settings={SETTINGS} onChange={vi.fn()} />);

  expect(screen.getByRole("alert")).toHaveTextContent("not allowed");
});

it.each([
  [{ launch: 3, decision: aScalingDecision({ wanted: 5 }) }, "It would launch 3 workers, for a pool of 5 workers."],
  [
    { launch: 1, drain: 2, replace: 1, decision: aScalingDecision({ wanted: 1 }) },
    "It would launch 1 worker, drain 2 workers and remove 1 broken machine, for a pool of 1 worker.",
  ],
  [{}, "It would change nothing: the pool stays at 2 workers."],
  [{ decision: aScalingDecision({ is_hold: true }) }, "It would hold: nothing changes."],
])("says what would be done: %#", (fields, text) => {
  render(<DryRunDialog {...IDLE} settings={SETTINGS} result={aDryRun(fields)} onRun={vi.fn()} />);

  expect(screen.getByRole("status")).toHaveTextContent(text);
});

it("tries other limits", async () => {
  const onRun = vi.fn();
  render(<DryRunDialog {...IDLE} settings={SETTINGS} result={undefined} onRun={onRun} />);
  expect(screen.getByText("The planner is asked…")).toBeVisible();
  const max = screen.getByLabelText("Max workers");

  await userEvent.clear(max);
  await userEvent.type(max, "4");
  await userEvent.click(screen.getByRole("button", { name: "Run again" }));

  expect(onRun).toHaveBeenCalledExactlyOnceWith({ min_workers: 0, max_workers: 4 });
});
