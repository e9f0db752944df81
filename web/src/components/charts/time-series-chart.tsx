/**
 * A time-series chart, drawn by uPlot, with the same values as a table for screen readers. Dragging selects a range, a click
 * picks a moment; the keys do the same: arrows move, shift and arrows select, Enter confirms.
 */

import { useEffect, useMemo, useRef, useState, type KeyboardEvent } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

import { ChartLegend, formatValue } from "@/components/charts/chart-legend";
import type { ChartMark, ChartProps, TimeSpan } from "@/components/charts/chart-types";
import { ChartValueTable } from "@/components/charts/chart-value-table";
import { plotOptions, type LineStyle, type PlotInput, type PlotStyle } from "@/components/charts/plot-options";
import { needsLogScale } from "@/lib/chart-scale-gaps-and-comparison";
import { formatClock, formatExact } from "@/lib/format-time";
import { formatTimeZone } from "@/lib/format-time-zone";
import { useIsDark } from "@/lib/theme-setting";
import { useTimeZone } from "@/lib/time-zone-setting";

const DAY_MS = 86_400_000;
const NO_MARKS: readonly ChartMark[] = [];
/** The least value on a logarithmic scale, which has no zero. */
const LEAST_LOGARITHMIC = 1;

export default function TimeSeriesChart(props: ChartProps) {
  const { label, times, series, format, height = 160, previousLabel = "previous", marks = NO_MARKS } = props;
  const { picked = null, onPick, onZoom, formatTicks = (ticks: readonly number[]) => ticks.map(format) } = props;
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const isDark = useIsDark();
  const zone = useTimeZone();
  const [pointed, setPointed] = useState<number | null>(null);
  const [anchor, setAnchor] = useState<number | null>(null);
  const isLong = (times.at(-1) ?? 0) - (times[0] ?? 0) > 2 * DAY_MS;
  const isLogarithmic = useMemo(
    () => props.canBeLogarithmic === true && needsLogScale(series.flatMap(({ values }) => values)),
    [props.canBeLogarithmic, series],
  );
  const data = useMemo<uPlot.AlignedData>(() => {
    const drawn = (values: readonly (number | null)[]) =>
      isLogarithmic ? values.map((value) => (value === null ? null : Math.max(value, LEAST_LOGARITHMIC))) : [...values];
    const previous = series.flatMap((one) => (one.previous === undefined ? [] : [drawn(one.previous)]));
    return [times.map((at) => at / 1000), ...series.map(({ values }) => drawn(values)), ...previous];
  }, [times, series, isLogarithmic]);
  // Redrawn when the style changes; new values only move the lines.
  const styleKey = JSON.stringify({
    lines: series.map(({ label, color, isFilled, dash, isStepped }): LineStyle => ({
      label,
      color,
      isFilled,
      dash,
      isStepped,
    })),
    previous: series.flatMap((one, at) => (one.previous === undefined ? [] : [at])),
    height,
    zone,
    isLong,
    isLogarithmic,
    canZoom: onZoom !== undefined,
  } satisfies PlotStyle);

  function spanOf(from: number, until = from): TimeSpan {
    const step = (times[1] ?? 0) - (times[0] ?? 0) || 60_000;
    return { from: times[from] ?? 0, until: (times[until] ?? 0) + step };
  }

  const now: PlotInput = {
    formatTicks,
    marks,
    picked,
    onPoint: setPointed,
    onPick: onPick && ((at) => onPick(spanOf(at))),
    onZoom,
  };
  const latest = useRef({ data, input: now });
  useEffect(() => {
    latest.current = { data, input: now };
  });

  useEffect(() => {
    const box = place.current;
    if (box === null) return;
    const style = JSON.parse(styleKey) as PlotStyle;
    const drawn = new uPlot(
      plotOptions(style, box.clientWidth, () => latest.current.input),
      latest.current.data,
      box,
    );
    plot.current = drawn;
    const resized = new ResizeObserver(() => drawn.setSize({ width: box.clientWidth, height: style.height }));
    resized.observe(box);
    return () => {
      resized.disconnect();
      drawn.destroy();
      plot.current = null;
    };
  }, [styleKey, isDark]);

  useEffect(() => plot.current?.setData(data), [data]);
  useEffect(() => plot.current?.redraw(false), [picked, marks]);

  const shown = pointed !== null && pointed < times.length ? pointed : times.length - 1;
  const shownAt = times[shown];

  function moveTo(at: number) {
    const target = Math.min(Math.max(0, at), times.length - 1);
    setPointed(target);
    plot.current?.setCursor({ left: plot.current.valToPos((times[target] ?? 0) / 1000, "x"), top: 1 });
    return target;
  }

  function onKeyDown(event: KeyboardEvent) {
    const steps: Readonly<Record<string, number>> = {
      ArrowLeft: -1,
      ArrowRight: 1,
      PageUp: -10,
      PageDown: 10,
      Home: -times.length,
      End: times.length,
    };
    const step = steps[event.key];
    if (step !== undefined) {
      event.preventDefault();
      setAnchor(event.shiftKey ? (anchor ?? shown) : null);
      moveTo(shown + step);
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      if (anchor !== null && anchor !== shown) onZoom?.(spanOf(Math.min(anchor, shown), Math.max(anchor, shown)));
      else onPick?.(spanOf(shown));
      setAnchor(null);
    }
  }

  const moment =
    shownAt === undefined ? "" : isLong ? formatExact(shownAt, zone).slice(0, 16) : formatClock(shownAt, zone, false);
  const control =
    onPick === undefined
      ? { "aria-hidden": true }
      : {
          role: "slider",
          tabIndex: 0,
          "aria-label": `Moment in ${label}`,
          "aria-valuemin": 0,
          "aria-valuemax": Math.max(0, times.length - 1),
          "aria-valuenow": Math.max(0, shown),
          "aria-valuetext": [
            moment,
            ...series.map((one) => `${one.label} ${formatValue(one.values[shown], format)}`),
          ].join(", "),
          onKeyDown,
        };
  return (
    <figure aria-label={label} className="min-w-0">
      <ChartLegend
        series={series}
        shown={shown}
        format={format}
        previousLabel={previousLabel}
        moment={shownAt === undefined ? "" : `${moment} ${formatTimeZone(zone, shownAt)}`}
        isLogarithmic={isLogarithmic}
      />
      <div ref={place} {...control} className="rota-chart min-w-0 rounded-sm" style={{ height }} />
      <ChartValueTable
        label={label}
        times={times}
        series={series}
        format={format}
        previousLabel={previousLabel}
        marks={marks}
        zone={zone}
      />
    </figure>
  );
}
