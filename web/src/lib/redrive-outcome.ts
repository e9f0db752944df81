/** What became of redriven jobs, in words. */

import { formatCount } from "@/lib/format-number";

export interface RedriveOutcome {
  readonly succeeded: number;
  readonly failed_again: number;
  readonly unfinished: number;
  readonly gone?: number;
}

/** "250 succeeded, 48 failed again, 2 not finished". */
export function formatOutcome({ succeeded, failed_again, unfinished, gone = 0 }: RedriveOutcome): string {
  return [
    `${formatCount(succeeded)} succeeded`,
    failed_again > 0 && `${formatCount(failed_again)} failed again`,
    unfinished > 0 && `${formatCount(unfinished)} not finished`,
    gone > 0 && `${formatCount(gone)} no longer stored`,
  ]
    .filter(Boolean)
    .join(", ");
}
