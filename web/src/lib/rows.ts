/** A list that is scrolled through while it changes: what is in view is renewed, and nothing moves unasked. */

import type { Job, JobsData, JobsPage } from "@/api/jobs";

/** An id may have had several runs. */
export function keyOf(job: Job): string {
  return `${job.jobId}@${job.run}`;
}

/** How many jobs have come in before the first one that is known. */
export function countNew(known: readonly Job[], head: readonly Job[]): number {
  const keys = new Set(known.map(keyOf));
  const first = head.findIndex((job) => keys.has(keyOf(job)));
  return first < 0 ? head.length : first;
}

/**
 * Those of a page that match no longer: they are missing though the fresh page reaches beyond them. Those missing at its
 * end may only have been pushed onto the next one.
 */
function findGone(page: JobsPage, fresh: JobsPage): ReadonlySet<string> {
  const keys = new Set(fresh.jobs.map(keyOf));
  const last = fresh.cursor === null ? page.jobs.length : page.jobs.findLastIndex((job) => keys.has(keyOf(job)));
  return new Set(
    page.jobs
      .slice(0, Math.max(0, last))
      .map(keyOf)
      .filter((key) => !keys.has(key)),
  );
}

function withPage(data: JobsData, place: number, page: JobsPage): JobsData {
  return { ...data, pages: data.pages.map((one, at) => (at === place ? page : one)) };
}

/** Renews the jobs of one page where they stand. Those that match no longer stay, marked; new ones are left out. */
export function renewPage(data: JobsData, place: number, fresh: JobsPage): JobsData {
  const page = data.pages[place];
  if (page === undefined) return data;
  const byKey = new Map(fresh.jobs.map((job) => [keyOf(job), job]));
  const jobs = page.jobs.map((job) => byKey.get(keyOf(job)) ?? job);
  const isLast = place === data.pages.length - 1;
  if (isLast && page.cursor === null) {
    // The list goes on where it ended before.
    const known = new Set(data.pages.flatMap((one) => one.jobs.map(keyOf)));
    const end = fresh.jobs.findLastIndex((job) => known.has(keyOf(job)));
    jobs.push(...fresh.jobs.slice(end + 1).filter((job) => !known.has(keyOf(job))));
  }
  return withPage(data, place, {
    ...page,
    jobs,
    cursor: isLast && page.cursor === null ? fresh.cursor : page.cursor,
    gone: findGone(page, fresh),
  });
}

/** Lets the top of the list be as it is now: new jobs come in, those that match no longer leave. */
export function renewTop(data: JobsData, fresh: JobsPage): JobsData {
  const [page, next] = data.pages;
  if (page === undefined) return data;
  const isFar = countNew(page.jobs, fresh.jobs) === fresh.jobs.length && fresh.jobs.length > 0;
  if (isFar || fresh.cursor === null) return { pages: [fresh], pageParams: [null] };
  const gone = findGone(page, fresh);
  const shown = new Set(fresh.jobs.map(keyOf));
  const onNext = new Set(next?.jobs.map(keyOf));
  const pushed = page.jobs.filter((job) => !shown.has(keyOf(job)) && !gone.has(keyOf(job)));
  const head = fresh.jobs.filter((job) => !onNext.has(keyOf(job)));
  // Where nothing was pushed off and no other page follows, the next one begins where the fresh one ends.
  const cursor = next === undefined && pushed.length === 0 ? fresh.cursor : page.cursor;
  return withPage(data, 0, { ...page, jobs: [...head, ...pushed], cursor, gone: new Set() });
}

/** The page that a row is on. */
export function pageAt(data: JobsData, row: number): number {
  let first = 0;
  for (const [place, page] of data.pages.entries()) {
    first += page.jobs.length;
    if (row < first) return place;
  }
  return Math.max(0, data.pages.length - 1);
}

/** The keys from one row to another, in either direction. */
export function range(rows: readonly Job[], from: number, to: number): string[] {
  return rows.slice(Math.min(from, to), Math.max(from, to) + 1).map(keyOf);
}
