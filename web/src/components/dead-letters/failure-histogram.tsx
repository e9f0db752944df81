import { formatPlural } from "@/lib/format-number";
import { formatSpan } from "@/lib/chart-period";
import { useTimeZone } from "@/lib/time-zone-setting";

interface FailureHistogramProps {
  buckets: readonly { readonly at: string; readonly count: number }[];
  /** The end of the last bucket. */
  until: string;
}

const HEIGHT = 24;

/** When the jobs of a group failed: one bar for each of equal parts of the time between the first and the last. */
export function FailureHistogram({ buckets, until }: FailureHistogramProps) {
  const zone = useTimeZone();
  const most = Math.max(1, ...buckets.map(({ count }) => count));
  const total = buckets.reduce((sum, { count }) => sum + count, 0);
  const first = buckets[0];
  if (first === undefined) return null;
  const label = `${formatPlural(total, "failure")}, ${formatSpan({ from: Date.parse(first.at), until: Date.parse(until) }, zone)}`;
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox={`0 0 ${buckets.length * 5} ${HEIGHT}`}
      preserveAspectRatio="none"
      className="h-6 w-30"
    >
      <title>{label}</title>
      <path d={`M0 ${HEIGHT - 0.5}H${buckets.length * 5}`} className="stroke-line-strong" strokeWidth="1" />
      {buckets.map(({ at, count }, place) => {
        const height = count === 0 ? 0 : Math.max(2, (count / most) * HEIGHT);
        return <rect key={at} x={place * 5} y={HEIGHT - height} width={4} height={height} className="fill-failed" />;
      })}
    </svg>
  );
}
