import { render, screen } from "@testing-library/react";
import { expect, it } from "vitest";

import { AheadMap, aheadWords, linesOf } from "@/components/schedules/ahead";

const START = Date.parse("2026-11-17T22:00:00Z");

function ahead(hours: number, uncounted = 0) {
  return {
    success: true as const,
    at: "2026-11-17T22:10:00.000Z",
    hours: Array.from({ length: hours }, (_, hour) => ({
      at: new Date(START + hour * 3_600_000).toISOString(),
      runs: 60,
      due: hour,
    })),
    uncounted,
  };
}

it("has a line for each day, with nothing before the first hour and after the last", () => {
  const lines = linesOf(ahead(28).hours, "utc");

  expect(lines.map(({ name }) => name)).toEqual(["Tue 17", "Wed 18", "Thu 19"]);
  expect(lines[0]?.cells.map((cell) => cell?.value ?? null)).toEqual([...Array<null>(22).fill(null), 60, 61]);
  expect(lines[1]?.cells[0]?.told).toBe("Wed 18 00:00–01:00: 60 runs of schedules, 2 scheduled jobs");
  expect(lines[2]?.cells.filter((cell) => cell !== null)).toHaveLength(2);
});

it("puts the hour that a clock shows twice into one place", () => {
  const [first, second] = ahead(2).hours;
  const again = { ...(second as NonNullable<typeof second>), at: (first as NonNullable<typeof first>).at };

  const [line] = linesOf([first as NonNullable<typeof first>, again], "utc");

  expect(line?.cells[22]?.value).toBe(121);
});

it("says how much there is of it, and what is not in it", () => {
  expect(aheadWords(ahead(168))).toBe("1,716 jobs in 24 hours, 24,108 in 7 days");

  render(<AheadMap ahead={ahead(24, 12)} zone="utc" />);

  expect(screen.getByText(/Runs of 12 more schedules are not in it/)).toBeVisible();
  expect(screen.getByRole("table", { name: "Jobs ahead by day and hour, UTC" })).toBeVisible();
});

it("says that there is nothing", () => {
  const hours = ahead(24).hours.map(({ at }) => ({ at, runs: 0, due: 0 }));

  render(<AheadMap ahead={{ ...ahead(0), hours }} zone="utc" />);

  expect(screen.getByText("Nothing comes in the next 7 days.")).toBeVisible();
  expect(screen.queryByRole("table")).toBeNull();
});
