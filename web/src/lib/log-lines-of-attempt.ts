/** Assigns the log lines of a job to its attempts, by time. */

import type { JobAttempt, LogLine } from "@/api/job-detail";

/** For each attempt the lines that were written from its start until the next one started. */
export function logLinesByAttempt(
  attempts: readonly JobAttempt[],
  lines: readonly LogLine[],
): ReadonlyMap<JobAttempt, readonly LogLine[]> {
  const starts = attempts.map(({ started_at }) => Date.parse(started_at));
  const found = new Map<JobAttempt, LogLine[]>();
  for (const line of lines) {
    const at = Date.parse(line.at);
    const attempt = attempts[starts.findLastIndex((start) => start <= at)];
    if (attempt === undefined) continue;
    const known = found.get(attempt);
    if (known === undefined) found.set(attempt, [line]);
    else known.push(line);
  }
  return found;
}
