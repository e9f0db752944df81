/** The least and the greatest number of workers, as they are typed into a form. */

export interface WorkerLimitsDraft {
  readonly min: string;
  readonly max: string;
}

export interface WorkerLimits {
  readonly min_workers: number;
  readonly max_workers: number;
}

export interface CheckedWorkerLimits {
  /** Null if a field is wrong. */
  readonly limits: WorkerLimits | null;
  readonly minError: string | null;
  readonly maxError: string | null;
}

const MOST_WORKERS = 10_000;

export function checkWorkerLimits({ min, max }: WorkerLimitsDraft): CheckedWorkerLimits {
  const least = readCount(min, 0);
  const most = readCount(max, 1);
  const minError = least === null ? `A whole number from 0 to ${MOST_WORKERS.toLocaleString("en-US")}` : null;
  const maxError =
    most === null
      ? `A whole number from 1 to ${MOST_WORKERS.toLocaleString("en-US")}`
      : least !== null && most < least
        ? "Less than the minimum"
        : null;
  const isRight = least !== null && most !== null && maxError === null;
  return { limits: isRight ? { min_workers: least, max_workers: most } : null, minError, maxError };
}

function readCount(text: string, least: number): number | null {
  const value = Number(text);
  return text.trim() !== "" && Number.isInteger(value) && value >= least && value <= MOST_WORKERS ? value : null;
}
