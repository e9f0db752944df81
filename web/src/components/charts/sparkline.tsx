import { classNames } from "@/lib/class-names";

const WIDTH = 120;
const HEIGHT = 24;

interface SparklineProps {
  /** The accessible name; the latest and the largest value are added. */
  label: string;
  values: readonly number[];
  /** The failed part of the values, drawn on top. */
  failed?: readonly number[];
  /** The width. */
  className: string;
}

/** A small line chart without axes. */
export function Sparkline({ label, values, failed, className }: SparklineProps) {
  const most = Math.max(1, ...values, ...(failed ?? []));
  const hasFailed = failed?.some((value) => value > 0) ?? false;
  const description = `${label}: ${values.at(-1) ?? 0} last, ${Math.max(0, ...values)} at most`;
  return (
    <svg
      role="img"
      aria-label={description}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      className={classNames("h-6 overflow-visible", className)}
    >
      <title>{description}</title>
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

/** The SVG path through the values; the top is `most`, the bottom 0. */
export function path(values: readonly number[], most: number): string {
  const step = values.length > 1 ? WIDTH / (values.length - 1) : 0;
  const points = values.map((value, at) => `${round(at * step)},${round(HEIGHT - 1 - (value / most) * (HEIGHT - 2))}`);
  return points.length > 0 ? `M${points.join(" L")}` : `M0,${HEIGHT - 1} L${WIDTH},${HEIGHT - 1}`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
