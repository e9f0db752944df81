import { describe, expect, it } from "vitest";

import type { JobsData, JobsPage } from "@/api/job-list";
import { countNewJobs, pageOfRow, refreshPage, refreshTop } from "@/lib/refresh-job-pages";
import { keysBetween } from "@/lib/use-row-selection";
import { aJob } from "@/test/factories";

function named(name: string) {
  return { jobId: `q:${name}`, run: "1" };
}

function page(names: string, cursor: string | null = "more"): JobsPage {
  return { jobs: Array.from(names, (name) => aJob.pending(named(name))), cursor, examined: names.length };
}

function list(...pages: JobsPage[]): JobsData {
  return { pages, pageParams: pages.map((_, place) => (place === 0 ? null : String(place))) };
}

function names(data: JobsData): string {
  return data.pages.map((one) => one.jobs.map((each) => each.jobId.slice(2)).join("")).join("|");
}

describe("refreshTop", () => {
  it("lets new jobs in, and keeps those that they push off the page", () => {
    expect(names(refreshTop(list(page("cdef"), page("ghij")), page("abcd")))).toBe("abcdef|ghij");
  });

  it("lets go of those that match no longer, and repeats none of the next page", () => {
    expect(names(refreshTop(list(page("abcd"), page("efgh")), page("acef")))).toBe("ac" + "d" + "|efgh");
    expect(names(refreshTop(list(page("abcd"), page("efgh")), page("adef")))).toBe("ad|efgh");
  });

  it("begins anew where nothing is known any more", () => {
    expect(names(refreshTop(list(page("wxyz"), page("1234")), page("abcd")))).toBe("abcd");
  });

  it("is all there is, where the fresh page is the last", () => {
    expect(names(refreshTop(list(page("abcd"), page("ef", null)), page("xab", null)))).toBe("xab");
  });
});

describe("refreshPage", () => {
  it("renews jobs where they stand, and moves none", () => {
    const fresh: JobsPage = {
      jobs: [aJob.pending(named("x")), aJob.failed(named("b")), aJob.pending(named("d"))],
      cursor: "more",
      examined: 3,
    };
    const renewed = refreshPage(list(page("abcd"), page("efgh")), 0, fresh);
    expect(names(renewed)).toBe("abcd|efgh");
    expect(renewed.pages[0]?.jobs[1]?.status).toBe("FAILED");
    expect([...(renewed.pages[0]?.gone ?? [])]).toEqual(["q:a@1", "q:c@1"]);
  });

  it("does not call those gone that may only have been pushed onto the next page", () => {
    const renewed = refreshPage(list(page("abcd"), page("efgh")), 0, page("xyab"));
    expect(renewed.pages[0]?.gone?.size).toBe(0);
  });

  it("goes on at the end of the list", () => {
    expect(names(refreshPage(list(page("ab"), page("cd", null)), 1, page("cdef", null)))).toBe("ab|cdef");
  });
});

it("counts what came in above", () => {
  expect(countNewJobs(page("cde").jobs, page("abcd").jobs)).toBe(2);
  expect(countNewJobs(page("cde").jobs, page("cde").jobs)).toBe(0);
  expect(countNewJobs(page("xyz").jobs, page("abc").jobs)).toBe(3);
});

it("finds the page of a row, and the rows between two", () => {
  const data = list(page("abcd"), page("efgh"));
  expect([0, 3, 4, 9].map((row) => pageOfRow(data, row))).toEqual([0, 0, 1, 1]);
  expect(keysBetween(page("abcd").jobs, 2, 1)).toEqual(["q:b@1", "q:c@1"]);
});
