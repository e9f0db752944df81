/** A time-series chart, drawn by uPlot, with the same values as a table for screen readers. */

import { useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

import { formatClock, formatDay, formatExact, type TimeZone } from "@/lib/format-time";
import { resolveCssColor } from "@/lib/resolve-css-color";
import { useIsDark } from "@/lib/theme-setting";
import { useTimeZone } from "@/lib/time-zone-setting";

export interface Series {
  readonly label: string;
  /** A CSS variable of the palette: "--completed". */
  readonly color: string;
  readonly values: readonly (number | null)[];
  readonly isFilled?: boolean;
  /** Each value holds until the next: counts that change at once. */
  readonly isStepped?: boolean;
  /** Dashed, so that lines differ by more than colour. */
  readonly dash?: readonly number[];
}

export interface ChartProps {
  /** The accessible name. */
  label: string;
  /** Milliseconds since 1970, ascending. */
  times: readonly number[];
  series: readonly Series[];
  format: (value: number) => string;
  height?: number;
}

type StyleOfSeries = [
  label: string,
  color: string,
  isFilled: boolean | undefined,
  dash: number[] | undefined,
  isStepped: boolean | undefined,
];

const DAY_MS = 86_400_000;
/** Number of rows in the table for screen readers: the latest. */
const TABLE_ROWS = 24;

export default function TimeSeriesChart({ label, times, series, format, height = 160 }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const isDark = useIsDark();
  const zone = useTimeZone();
  const [pointed, setPointed] = useState<number | null>(null);
  const data = useMemo<uPlot.AlignedData>(
    () => [times.map((at) => at / 1000), ...series.map((one) => [...one.values])],
    [times, series],
  );
  const latest = useRef(data);
  const isLong = (times.at(-1) ?? 0) - (times[0] ?? 0) > 2 * DAY_MS;
  // Redrawn when the style changes; new values only move the lines.
  const styleKey = JSON.stringify(
    series.map(({ label, color, isFilled, dash, isStepped }) => [label, color, isFilled, dash, isStepped]),
  );

  useEffect(() => {
    const box = place.current;
    if (box === null) return;
    const described = JSON.parse(styleKey) as StyleOfSeries[];
    const grid = { stroke: resolveCssColor("--line"), width: 1 };
    const axis = {
      stroke: resolveCssColor("--muted"),
      font: "11px system-ui, sans-serif",
      grid,
      ticks: { show: false },
    };
    const drawn = new uPlot(
      {
        width: box.clientWidth,
        height,
        cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
        // A legend of our own: its layout is stable while values change.
        legend: { show: false },
        scales: { y: { range: (_, __, max) => [0, Math.max(max * 1.1, 1e-9)] } },
        axes: [
          {
            ...axis,
            size: 24,
            space: 64,
            grid: { show: false },
            values: (_, ticks) => ticks.map((at) => tick(at * 1000, zone, isLong)),
          },
          { ...axis, size: 66, space: 36, values: (_, ticks) => ticks.map(format) },
        ],
        series: [
          {},
          ...described.map(([name, color, isFilled, dash, isStepped]) => ({
            label: name,
            stroke: resolveCssColor(color),
            width: 1.5,
            dash,
            fill: isFilled ? `color-mix(in srgb, ${resolveCssColor(color)} 14%, transparent)` : undefined,
            paths: isStepped ? uPlot.paths.stepped?.({ align: 1 }) : undefined,
            // A line needs two values.
            points: { show: hasSingleValue, size: 5 },
          })),
        ],
        hooks: { setCursor: [(self) => setPointed(self.cursor.idx ?? null)] },
      },
      latest.current,
      box,
    );
    plot.current = drawn;
    const resized = new ResizeObserver(() => drawn.setSize({ width: box.clientWidth, height }));
    resized.observe(box);
    return () => {
      resized.disconnect();
      drawn.destroy();
      plot.current = null;
    };
  }, [styleKey, height, isDark, zone, isLong, format]);

  useEffect(() => {
    latest.current = data;
    plot.current?.setData(data);
  }, [data]);

  const shown = pointed !== null && pointed < times.length ? pointed : times.length - 1;
  const shownAt = times[shown];
  const first = Math.max(0, times.length - TABLE_ROWS);
  return (
    <figure aria-label={label} className="min-w-0">
      <div aria-hidden className="mb-2 flex min-h-10 flex-wrap items-center gap-x-4 text-xs sm:min-h-5">
        {series.map((one) => (
          <span key={one.label} className="flex items-center gap-1.5 text-muted">
            <LegendLine color={one.color} dash={one.dash} />
            {one.label}
            <span className="tabular-nums min-w-12 text-text">{formatValue(one.values[shown], format)}</span>
          </span>
        ))}
        <span className="tabular-nums ml-auto text-muted">
          {shownAt === undefined
            ? ""
            : isLong
              ? formatExact(shownAt, zone).slice(0, 16)
              : formatClock(shownAt, zone, false)}
        </span>
      </div>
      <div ref={place} aria-hidden className="rota-chart min-w-0" style={{ height }} />
      <div className="sr-only">
        <table>
          <caption>{label}</caption>
          <thead>
            <tr>
              <th scope="col">Time</th>
              {series.map((one) => (
                <th key={one.label} scope="col">
                  {one.label}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {times.slice(first).map((at, row) => (
              <tr key={at}>
                <th scope="row">{formatExact(at, zone)}</th>
                {series.map((one) => (
                  <td key={one.label}>{formatValue(one.values[first + row], format)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </figure>
  );
}

function LegendLine({ color, dash }: { color: string; dash?: readonly number[] }) {
  return (
    <svg viewBox="0 0 14 4" className="h-1 w-3.5 shrink-0">
      <path d="M0 2h14" stroke={`var(${color})`} strokeWidth="2.5" strokeDasharray={dash?.join(" ")} />
    </svg>
  );
}

function hasSingleValue(self: uPlot, series: number): boolean {
  const values = self.data[series] as readonly (number | null | undefined)[] | undefined;
  return values?.filter((value) => value !== null && value !== undefined).length === 1;
}

function formatValue(value: number | null | undefined, format: (value: number) => string): string {
  return value === null || value === undefined ? "–" : format(value);
}

function tick(at: number, zone: TimeZone, isLong: boolean): string {
  return isLong ? formatDay(at, zone) : formatClock(at, zone, false);
}
