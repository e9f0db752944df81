/** A chart of series over time, drawn by uPlot; beside the canvas the same figures as a table, for those who cannot see it. */

import { useEffect, useMemo, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

import { colorOf } from "@/lib/colors";
import { useIsDark } from "@/lib/theme";
import { clock, exact } from "@/lib/time";
import { useZone } from "@/lib/zone";

export interface Series {
  readonly label: string;
  /** A CSS variable of the palette: "--completed". */
  readonly color: string;
  readonly values: readonly (number | null)[];
  readonly isFilled?: boolean;
}

interface ChartProps {
  /** What it shows, in words. */
  label: string;
  /** Milliseconds since 1970, growing. */
  times: readonly number[];
  series: readonly Series[];
  format: (value: number) => string;
  height?: number;
}

export default function Chart({ label, times, series, format, height = 160 }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const isDark = useIsDark();
  const zone = useZone();
  const data = useMemo<uPlot.AlignedData>(
    () => [times.map((at) => at / 1000), ...series.map((one) => [...one.values])],
    [times, series],
  );
  const latest = useRef(data);
  // Drawn anew when it looks different; new figures only move the lines.
  const looks = JSON.stringify(series.map(({ label, color, isFilled }) => [label, color, isFilled]));

  useEffect(() => {
    const box = place.current;
    if (box === null) return;
    const described = JSON.parse(looks) as [string, string, boolean | undefined][];
    const grid = { stroke: colorOf("--line"), width: 1 };
    const axis = { stroke: colorOf("--muted"), font: "11px system-ui, sans-serif", grid, ticks: { show: false } };
    const drawn = new uPlot(
      {
        width: box.clientWidth,
        height,
        cursor: { y: false, points: { size: 6 } },
        legend: { show: true, live: true },
        scales: { y: { range: (_, __, max) => [0, Math.max(max * 1.1, 1e-9)] } },
        axes: [
          {
            ...axis,
            size: 24,
            grid: { show: false },
            values: (_, ticks) => ticks.map((at) => clock(at * 1000, zone, false)),
          },
          { ...axis, size: 56, values: (_, ticks) => ticks.map(format) },
        ],
        series: [
          { label: "at", value: (_, at: number | null) => (at === null ? "–" : exact(at * 1000, zone).slice(0, 16)) },
          ...described.map(([name, color, isFilled]) => ({
            label: name,
            stroke: colorOf(color),
            width: 1.5,
            fill: isFilled ? `color-mix(in srgb, ${colorOf(color)} 15%, transparent)` : undefined,
            points: { show: false },
            value: (_: uPlot, value: number | null) => (value === null ? "–" : format(value)),
          })),
        ],
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
  }, [looks, height, isDark, zone, format]);

  useEffect(() => {
    latest.current = data;
    plot.current?.setData(data);
  }, [data]);

  return (
    <figure aria-label={label} className="min-w-0">
      <div ref={place} aria-hidden className="rota-chart min-w-0" />
      <table className="sr-only">
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
          {times.slice(-12).map((at, row) => (
            <tr key={at}>
              <th scope="row">{exact(at, zone)}</th>
              {series.map((one) => {
                const value = one.values[Math.max(0, times.length - 12) + row];
                return <td key={one.label}>{value === null || value === undefined ? "none" : format(value)}</td>;
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </figure>
  );
}
