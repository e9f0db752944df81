import { render, screen, within } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";

import { Heatmap, levelOf } from "@/components/charts/heatmap";

const LINES = [
  {
    name: "Mon",
    cells: [
      { value: 0, description: "nothing" },
      { value: 1200, description: "1,200 jobs" },
    ],
  },
  { name: "Tue", cells: [{ value: 7, description: "7 jobs" }, null] },
];

function texts(row: HTMLElement): string[] {
  return [...within(row).getAllByRole("rowheader"), ...within(row).getAllByRole("cell")].map(
    ({ textContent }) => textContent,
  );
}

function draw(isWide: boolean): HTMLElement[] {
  vi.spyOn(window, "matchMedia").mockReturnValue({
    matches: isWide,
    addEventListener: () => undefined,
    removeEventListener: () => undefined,
  } as unknown as MediaQueryList);
  render(<Heatmap label="Jobs by hour" tone="completed" columns={["00", "01"]} rows={LINES} note="UTC" />);
  return within(screen.getByRole("table", { name: "Jobs by hour" }))
    .getAllByRole("row")
    .slice(1);
}

afterEach(() => vi.restoreAllMocks());

it("is a table with the figure in every cell, and all of it in its title", () => {
  const rows = draw(true);

  expect(rows.map(texts)).toEqual([
    ["Mon", "0", "1.2k"],
    ["Tue", "7", ""],
  ]);
  expect(screen.getByTitle("1,200 jobs")).toHaveTextContent("1.2k");
});

it("is turned over where it would be too wide", () => {
  expect(draw(false).map(texts)).toEqual([
    ["00", "0", "7"],
    ["01", "1.2k", ""],
  ]);
});

it("says what each shade stands for", () => {
  draw(true);

  expect(screen.getByText("up to 300")).toBeVisible();
  expect(screen.getByText("up to 1.2k")).toBeVisible();
});

it("shades by quarters of the most: little is not nothing", () => {
  expect([0, 1, 25, 26, 75, 76, 100].map((value) => levelOf(value, 100))).toEqual([0, 1, 1, 2, 3, 4, 4]);
  expect([1, 2, 3].map((value) => levelOf(value, 3))).toEqual([2, 3, 4]);
});
