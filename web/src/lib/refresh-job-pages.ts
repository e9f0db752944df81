/** Refreshes the loaded pages of the job list in place: rows are updated, and none moves unless the user asks. */

import type { Job, JobsData, JobsPage } from "@/api/job-list";
import { runKey } from "@/lib/run-key";

/** The number of jobs that arrived before the first known one. */
export function countNewJobs(known: readonly Job[], head: readonly Job[]): number {
  const keys = new Set(known.map(runKey));
  const first = head.findIndex((job) => keys.has(runKey(job)));
  return first < 0 ? head.length : first;
}

/**
 * The jobs of a page that no longer match: they are missing although the fresh page reaches beyond them. Jobs missing at
 * its end may only have moved to the next page.
 */
function findGone(page: JobsPage, fresh: JobsPage): ReadonlySet<string> {
  const keys = new Set(fresh.jobs.map(runKey));
  const last = fresh.cursor === null ? page.jobs.length : page.jobs.findLastIndex((job) => keys.has(runKey(job)));
  return new Set(
    page.jobs
      .slice(0, Math.max(0, last))
      .map(runKey)
      .filter((key) => !keys.has(key)),
  );
}

function withPage(data: JobsData, place: number, page: JobsPage): JobsData {
  return { ...data, pages: data.pages.map((one, at) => (at === place ? page : one)) };
}

/** Updates the jobs of one page in place. Jobs that no longer match stay, marked; new ones are left out. */
export function refreshPage(data: JobsData, place: number, fresh: JobsPage): JobsData {
  const page = data.pages[place];
  if (page === undefined) return data;
  const byKey = new Map(fresh.jobs.map((job) => [runKey(job), job]));
  const jobs = page.jobs.map((job) => byKey.get(runKey(job)) ?? job);
  const isLast = place === data.pages.length - 1;
  if (isLast && page.cursor === null) {
    // The list continues where it ended.
    const known = new Set(data.pages.flatMap((one) => one.jobs.map(runKey)));
    const end = fresh.jobs.findLastIndex((job) => known.has(runKey(job)));
    jobs.push(...fresh.jobs.slice(end + 1).filter((job) => !known.has(runKey(job))));
  }
  return withPage(data, place, {
    ...page,
    jobs,
    cursor: isLast && page.cursor === null ? fresh.cursor : page.cursor,
    gone: findGone(page, fresh),
  });
}

/** Replaces the top of the list: adds new jobs, removes those that no longer match. */
export function refreshTop(data: JobsData, fresh: JobsPage): JobsData {
  const [page, next] = data.pages;
  if (page === undefined) return data;
  const isFar = countNewJobs(page.jobs, fresh.jobs) === fresh.jobs.length && fresh.jobs.length > 0;
  if (isFar || fresh.cursor === null) return { pages: [fresh], pageParams: [null] };
  const gone = findGone(page, fresh);
  const shown = new Set(fresh.jobs.map(runKey));
  const onNext = new Set(next?.jobs.map(runKey));
  const pushed = page.jobs.filter((job) => !shown.has(runKey(job)) && !gone.has(runKey(job)));
  const head = fresh.jobs.filter((job) => !onNext.has(runKey(job)));
  // If no job was pushed off and no page follows, the next page starts where the fresh one ends.
  const cursor = next === undefined && pushed.length === 0 ? fresh.cursor : page.cursor;
  return withPage(data, 0, { ...page, jobs: [...head, ...pushed], cursor, gone: new Set() });
}

/** The page that a row is on. */
export function pageOfRow(data: JobsData, row: number): number {
  let first = 0;
  for (const [place, page] of data.pages.entries()) {
    first += page.jobs.length;
    if (row < first) return place;
  }
  return Math.max(0, data.pages.length - 1);
}
