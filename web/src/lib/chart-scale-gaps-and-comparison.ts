/** Decisions about how the values of a chart are drawn. */

type Value = number | null | undefined;

/** An outlier this many times above the usual values flattens the others to a line at the bottom. */
const FLATTENED_BY = 30;

function isNumber(value: Value): value is number {
  return value !== null && value !== undefined;
}

/** Whether outliers would flatten all other values on a linear scale. */
export function needsLogScale(values: readonly Value[]): boolean {
  const positive = values.filter(isNumber).filter((value) => value > 0);
  if (positive.length < 4) return false;
  const sorted = positive.toSorted((one, other) => one - other);
  const median = sorted[Math.floor(sorted.length / 2)] ?? 0;
  return (sorted.at(-1) ?? 0) > FLATTENED_BY * median;
}

/** Values without a neighbour: no line leads to them, so they are drawn as points. */
export function isolatedPoints(values: readonly Value[]): number[] {
  return values.flatMap((value, at) =>
    isNumber(value) && !isNumber(values[at - 1]) && !isNumber(values[at + 1]) ? [at] : [],
  );
}

interface Period {
  readonly since: string;
  readonly step_ms: number;
  readonly points: readonly { readonly at: string }[];
}

/**
 * For each time of a chart, the point of the earlier period that covers the same moment `shift` ms before, and null where
 * there is none. Earlier periods may have wider steps.
 */
export function alignPrevious<P extends Period>(
  times: readonly number[],
  shift: number,
  previous: P,
): (P["points"][number] | null)[] {
  const first = Date.parse(previous.points[0]?.at ?? previous.since);
  return times.map((at) => previous.points[Math.floor((at - shift - first) / previous.step_ms)] ?? null);
}
