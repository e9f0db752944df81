import { render, screen } from "@testing-library/react";
import { expect, it } from "vitest";

import { ForecastHeatmap, forecastSummary, toHeatmapRows } from "@/components/schedules/forecast-heatmap";

const START = Date.parse("2026-11-17T22:00:00Z");

function forecast(hours: number, uncounted = 0) {
  return {
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
  const lines = toHeatmapRows(forecast(28).hours, "utc");

  expect(lines.map(({ name }) => name)).toEqual(["Tue 17", "Wed 18", "Thu 19"]);
  expect(lines[0]?.cells.map((cell) => cell?.value ?? null)).toEqual([...Array<null>(22).fill(null), 60, 61]);
  expect(lines[1]?.cells[0]?.description).toBe("Wed 18 00:00–01:00: 60 runs of schedules, 2 scheduled jobs");
  expect(lines[2]?.cells.filter((cell) => cell !== null)).toHaveLength(2);
});

it("puts the hour that a clock shows twice into one place", () => {
  const [first, second] = forecast(2).hours;
  const again = { ...(second as NonNullable<typeof second>), at: (first as NonNullable<typeof first>).at };

  const [line] = toHeatmapRows([first as NonNullable<typeof first>, again], "utc");

  expect(line?.cells[22]?.value).toBe(121);
});

it("says how much there is of it, and what is not in it", () => {
  expect(forecastSummary(forecast(168))).toBe("1,716 jobs in 24 hours, 24,108 in 7 days");

  render(<ForecastHeatmap forecast={forecast(24, 12)} zone="utc" />);

  expect(screen.getByText(/Does not include 12 more schedules/)).toBeVisible();
  expect(screen.getByRole("table", { name: "Upcoming jobs by day and hour, UTC" })).toBeVisible();
});

it("says that there is nothing", () => {
  const hours = forecast(24).hours.map(({ at }) => ({ at, runs: 0, due: 0 }));

  render(<ForecastHeatmap forecast={{ ...forecast(0), hours }} zone="utc" />);

  expect(screen.getByText("No jobs in the next 7 days.")).toBeVisible();
  expect(screen.queryByRole("table")).toBeNull();
});
