import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";

import type { Workflow, WorkflowStep } from "@/api/workflows";
import { StepGanttChart } from "@/components/workflow/step-gantt-chart";
import { anAttempt, aStep, at } from "@/test/factories";
import { renderWithRouter } from "@/test/render-with-router";

const CHARGE: WorkflowStep = {
  ...aStep({
    index: 0,
    name: "charge",
    after: [],
    executions: [anAttempt(1, 1, 2, "failed"), anAttempt(2, 5, 6, "completed")],
  }),
  undo: {
    jobId: "orders:refund",
    state: "completed",
    status: "COMPLETED",
    attempts: [anAttempt(1, 11, 13, "failed"), anAttempt(2, 19, 20, "completed")],
    error: null,
    actions: [],
  },
};

const WORKFLOW: Workflow = {
  id: "w1",
  name: "order",
  state: "UNDONE",
  done: 1,
  total: 3,
  created_at: at(0),
  ended_at: at(20),
  cause: null,
  on_failure: "undo",
  resume: null,
  limit: null,
  explanation: "",
  steps: [
    CHARGE,
    aStep({ index: 1, name: "quick", after: [], executions: [anAttempt(1, 0, 1, "completed")] }),
    aStep({ index: 2, name: "pack", after: [0, 1], executions: [anAttempt(1, 6, 10, "failed")] }),
  ],
  actions: [],
};

function partsOf(row: HTMLElement): string[] {
  return [...row.querySelectorAll("[title]")].map((one) => one.getAttribute("title") ?? "").slice(1);
}

it("has a bar for every attempt of a step, and lighter ones for the waits between", async () => {
  renderWithRouter(<StepGanttChart workflow={WORKFLOW} isCriticalOnly={false} onCriticalOnly={() => undefined} />);
  const steps = within(await screen.findByRole("list", { name: "Step timeline" })).getAllByRole("listitem");

  expect(partsOf(steps[0] as HTMLElement)).toEqual([
    "waited 1 s",
    "attempt 1 failed, 1 s: ValueError: no",
    "waited 3 s",
    "attempt 2 completed, 1 s",
  ]);
  expect(steps[0]).toHaveTextContent("2 s2 attempts");
  expect(steps.map((step) => step.textContent.includes("on the critical path"))).toEqual([true, false, true]);
});

it("shows what was undone, in the same time", async () => {
  renderWithRouter(<StepGanttChart workflow={WORKFLOW} isCriticalOnly={false} onCriticalOnly={() => undefined} />);
  const [undo, ...others] = within(await screen.findByRole("list", { name: "Compensations" })).getAllByRole("listitem");

  expect(others).toEqual([]);
  expect(undo).toHaveTextContent("undo charge");
  expect(partsOf(undo as HTMLElement)).toEqual([
    "attempt 1 failed, 2 s: ValueError: no",
    "waited 6 s",
    "attempt 2 completed, 1 s",
  ]);
});

it("shows the critical path alone, if asked", async () => {
  const asked = vi.fn();
  renderWithRouter(<StepGanttChart workflow={WORKFLOW} isCriticalOnly onCriticalOnly={asked} />);
  const steps = within(await screen.findByRole("list", { name: "Step timeline" })).getAllByRole("listitem");

  expect(steps.map((step) => within(step).getByRole("link").textContent)).toEqual(["charge", "pack"]);
  await userEvent.click(screen.getByRole("button", { name: "Critical path only", pressed: true }));
  expect(asked).toHaveBeenCalledWith(false);
});
