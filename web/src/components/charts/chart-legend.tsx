/** Above a chart: each line with its value at the pointed moment, and that moment with its time zone. */

import type { Series } from "@/components/charts/chart-types";

interface ChartLegendProps {
  series: readonly Series[];
  /** The place of the values. */
  shown: number;
  format: (value: number) => string;
  previousLabel: string;
  /** "14:03 UTC+01:00". */
  moment: string;
  isLogarithmic: boolean;
}

export function ChartLegend({ series, shown, format, previousLabel, moment, isLogarithmic }: ChartLegendProps) {
  return (
    <div aria-hidden className="mb-2 flex min-h-10 flex-wrap items-center gap-x-4 gap-y-0.5 text-xs sm:min-h-5">
      {series.map((one) => (
        <span key={one.label} className="flex items-center gap-1.5 text-muted">
          <LegendLine color={one.color} dash={one.dash} />
          {one.label}
          <span className="tabular-nums min-w-12 text-text">{formatValue(one.values[shown], format)}</span>
          {one.previous !== undefined && (
            <span className="tabular-nums flex items-center gap-1.5">
              <LegendLine color={one.color} dash={[1, 3]} />
              {previousLabel} <span className="min-w-10">{formatValue(one.previous[shown], format)}</span>
            </span>
          )}
        </span>
      ))}
      <span className="tabular-nums ml-auto text-muted">
        {isLogarithmic && <span className="mr-3">logarithmic scale</span>}
        {moment}
      </span>
    </div>
  );
}

function LegendLine({ color, dash }: { color: string; dash?: readonly number[] }) {
  return (
    <svg viewBox="0 0 14 4" className="h-1 w-3.5 shrink-0">
      <path d="M0 2h14" stroke={`var(${color})`} strokeWidth="2.5" strokeDasharray={dash?.join(" ")} />
    </svg>
  );
}

export function formatValue(value: number | null | undefined, format: (value: number) => string): string {
  return value === null || value === undefined ? "–" : format(value);
}
