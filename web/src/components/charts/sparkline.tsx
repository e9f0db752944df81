import { classes } from "@/lib/classes";

const WIDTH = 120;
const HEIGHT = 24;

interface SparklineProps {
  /** What it shows, in words; the last and the largest figure are added. */
  label: string;
  values: readonly number[];
  /** Drawn over it: of those, the ones that failed. */
  failed?: readonly number[];
  /** How wide it is. */
  className: string;
}

/** A line without axes: how it went lately, at one glance. */
export function Sparkline({ label, values, failed, className }: SparklineProps) {
  const most = Math.max(1, ...values, ...(failed ?? []));
  const hasFailed = failed?.some((value) => value > 0) ?? false;
  const told = `${label}: ${values.at(-1) ?? 0} last, ${Math.max(0, ...values)} at most`;
  return (
    <svg
      role="img"
      aria-label={told}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      className={classes("h-6 overflow-visible", className)}
    >
      <title>{told}</title>
      <path d={`${path(values, most)} L${WIDTH},${HEIGHT} L0,${HEIGHT} Z`} className="fill-completed-soft" />
      {hasFailed && failed && (
        <path
          d={path(failed, most)}
          fill="none"
          className="stroke-failed"
          strokeWidth="1.25"
          vectorEffect="non-scaling-stroke"
        />
      )}
      <path
        d={path(values, most)}
        fill="none"
        className="stroke-completed"
        strokeWidth="1.25"
        vectorEffect="non-scaling-stroke"
      />
    </svg>
  );
}

/** The line through the values; its top is `most`, its bottom 0. */
export function path(values: readonly number[], most: number): string {
  const step = values.length > 1 ? WIDTH / (values.length - 1) : 0;
  const points = values.map((value, at) => `${round(at * step)},${round(HEIGHT - 1 - (value / most) * (HEIGHT - 2))}`);
  return points.length > 0 ? `M${points.join(" L")}` : `M0,${HEIGHT - 1} L${WIDTH},${HEIGHT - 1}`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
