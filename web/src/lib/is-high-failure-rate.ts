/** A queue with at least this share of failed attempts is highlighted. */
const HIGH_FAILURE_RATE = 0.1;

export function isHighFailureRate(rate: number | null): boolean {
  return rate !== null && rate >= HIGH_FAILURE_RATE;
}
