/** One sentence that compares the present with what is usual: the answer to "why is it slow?". */

import { durationUnit, formatInUnit } from "@/lib/format-durations-in-one-unit";

/** Factors below this are within the usual variation. */
const NOTABLE = 2;

export interface ComparedWithUsual {
  readonly sentence: string;
  readonly isNotable: boolean;
}

/** "Jobs run for 3.5 s, usually 0.13 s: 28 × slower". Null if nothing ran. `subject`: "Jobs run for". */
export function compareWithUsual(
  subject: string,
  nowMs: number | null,
  usualMs: number | null | undefined,
): ComparedWithUsual | null {
  if (nowMs === null) return null;
  const unit = durationUnit([nowMs]);
  const now = formatInUnit(nowMs, unit);
  if (usualMs === null || usualMs === undefined) return { sentence: `${subject} ${now}`, isNotable: false };
  const usual = formatInUnit(usualMs, unit.ms > usualMs * 100 ? durationUnit([usualMs]) : unit);
  const factor = nowMs / Math.max(usualMs, 1);
  if (factor < NOTABLE) return { sentence: `${subject} ${now}, as usual (${usual})`, isNotable: false };
  return { sentence: `${subject} ${now}, usually ${usual}: ${formatFactor(factor)} × longer`, isNotable: true };
}

function formatFactor(factor: number): string {
  return factor >= 10 ? Math.round(factor).toString() : factor.toFixed(1);
}
