/** Estimated time left of an attempt, in ms, from its reported rate; null once it is overdue. */
export function estimatedTimeLeft(progress: { seconds_left: number | null; at: string }, now: number): number | null {
  if (progress.seconds_left === null) return null;
  const left = progress.seconds_left * 1000 - (now - new Date(progress.at).getTime());
  return left > 0 ? left : null;
}
