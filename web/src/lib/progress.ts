/** How long an attempt will still take, ms, by the pace that it told; null once it is later than that: then nobody knows. */
export function timeLeft(progress: { seconds_left: number | null; at: string }, now: number): number | null {
  if (progress.seconds_left === null) return null;
  const left = progress.seconds_left * 1000 - (now - new Date(progress.at).getTime());
  return left > 0 ? left : null;
}
