import { describe, expect, it } from "vitest";

import { chartPeriod, readChartSearch } from "@/lib/chart-period";

const NOW = Date.parse("2026-11-18T12:00:00Z");

describe("search params", () => {
  it("take a range, or a chosen period that ends after it begins", () => {
    expect(readChartSearch({ range: "day", compare: "week" })).toMatchObject({ range: "day", compare: "week" });
    const chosen = { from: "2026-11-18T03:00:00.000Z", until: "2026-11-18T04:00:00.000Z" };
    expect(readChartSearch(chosen)).toMatchObject(chosen);
  });

  it("drop what makes no sense", () => {
    expect(readChartSearch({ range: "year", compare: "moon", from: "soon", until: "later" })).toEqual({});
    expect(readChartSearch({ from: "2026-11-18T04:00:00Z", until: "2026-11-18T03:00:00Z" })).toEqual({});
    expect(readChartSearch({ from: "2026-11-18T04:00:00Z" })).toEqual({});
  });
});

describe("the period", () => {
  it("is the last hour by default", () => {
    expect(chartPeriod({}, NOW, "utc")).toMatchObject({ sinceS: 3600, stepS: 60, until: undefined });
  });

  it("has steps that fit a chosen range, and is not refreshed once it is over", () => {
    const search = { from: "2026-11-18T03:00:00Z", until: "2026-11-18T07:00:00Z" };
    expect(chartPeriod(search, NOW, "utc")).toEqual({
      sinceS: 4 * 3600,
      stepS: 300,
      until: search.until,
      everyMs: false,
      words: "18 Nov 03:00 to 07:00",
    });
  });

  it("has hours where minutes are no longer stored", () => {
    const search = { from: "2026-11-16T23:30:00Z", until: "2026-11-17T00:30:00Z" };
    expect(chartPeriod(search, NOW, "utc")).toMatchObject({
      sinceS: 3600,
      stepS: 3600,
      words: "16 Nov 23:30 to 17 Nov 00:30",
    });
  });
});
