/** The options of a chart for uPlot: axes, lines, marks and what the mouse does. */

import uPlot from "uplot";

import type { ChartMark, Series, TimeSpan } from "@/components/charts/chart-types";
import { isolatedPoints } from "@/lib/chart-scale-gaps-and-comparison";
import { formatClock, formatDay, type TimeZone } from "@/lib/format-time";
import { resolveCssColor } from "@/lib/resolve-css-color";

export type LineStyle = Pick<Series, "label" | "color" | "isFilled" | "isStepped" | "dash">;

export interface PlotStyle {
  readonly lines: readonly LineStyle[];
  /** The lines that have an earlier period, by place. */
  readonly previous: readonly number[];
  readonly height: number;
  readonly zone: TimeZone;
  /** Days instead of times of day on the axis. */
  readonly isLong: boolean;
  readonly isLogarithmic: boolean;
  readonly canZoom: boolean;
}

/** What changes without a new plot, and the functions to call. */
export interface PlotInput {
  readonly formatTicks: (ticks: readonly number[]) => string[];
  readonly marks: readonly ChartMark[];
  readonly picked: TimeSpan | null;
  readonly onPoint: (place: number | null) => void;
  readonly onPick?: (place: number) => void;
  readonly onZoom?: (span: TimeSpan) => void;
}

// The enum exists only in the types of uPlot.
// eslint-disable-next-line @typescript-eslint/no-unsafe-enum-assignment
const LOGARITHMIC = 3 as uPlot.Scale.Distr;
/** A drag shorter than this is a click. */
const MIN_DRAG_PX = 6;
const CHARACTER_PX = 6.4;
const MAX_MARK_CHARACTERS = 18;

export function plotOptions(style: PlotStyle, width: number, input: () => PlotInput): uPlot.Options {
  const { zone, isLong, isLogarithmic } = style;
  const axis = {
    stroke: resolveCssColor("--muted"),
    font: "11px system-ui, sans-serif",
    grid: { stroke: resolveCssColor("--line"), width: 1 },
    ticks: { show: false },
  };
  const labels = (_: uPlot, ticks: (number | null)[]) => {
    const shown = ticks.filter((tick) => tick !== null);
    const texts = input().formatTicks(shown);
    return ticks.map((tick) => (tick === null ? "" : (texts[shown.indexOf(tick)] ?? "")));
  };
  return {
    width,
    height: style.height,
    // Room for the last label of the time axis.
    padding: [8, 22, 0, 0],
    tzDate: (seconds) =>
      zone === "utc" ? uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC") : new Date(seconds * 1000),
    cursor: {
      y: false,
      points: { size: 6 },
      drag: { x: style.canZoom, y: false, setScale: false, dist: MIN_DRAG_PX },
    },
    // A legend of our own: its layout is stable while values change.
    legend: { show: false },
    scales: { y: isLogarithmic ? { distr: LOGARITHMIC } : { range: (_, __, max) => [0, Math.max(max * 1.1, 1e-9)] } },
    axes: [
      {
        ...axis,
        size: 24,
        space: 64,
        grid: { show: false },
        values: (_, ticks) =>
          ticks.map((at) => (isLong ? formatDay(at * 1000, zone) : formatClock(at * 1000, zone, false))),
      },
      {
        ...axis,
        space: 30,
        values: labels,
        // As wide as the longest label: none is clipped.
        size: (_, texts) =>
          Math.max(36, ...((texts as readonly string[] | null) ?? []).map((text) => text.length * CHARACTER_PX + 16)),
      },
    ],
    series: [
      {},
      ...style.lines.map(lineOptions),
      ...style.previous.map((place) => previousOptions(style.lines[place])),
    ],
    hooks: {
      setCursor: [(self) => input().onPoint(self.cursor.idx ?? null)],
      setSelect: [(self) => finishDrag(self, input())],
      ready: [(self) => listenForClicks(self, input)],
      drawClear: [(self) => drawPicked(self, input().picked)],
      draw: [(self) => drawMarks(self, input().marks)],
    },
  };
}

function lineOptions({ label, color, isFilled, dash, isStepped }: LineStyle): uPlot.Series {
  const stroke = resolveCssColor(color);
  return {
    label,
    stroke,
    width: 1.5,
    dash: dash === undefined ? undefined : [...dash],
    fill: isFilled ? `color-mix(in srgb, ${stroke} 14%, transparent)` : undefined,
    paths: isStepped ? uPlot.paths.stepped?.({ align: 1 }) : undefined,
    // A line needs two values: single ones are drawn as points.
    points: { show: true, size: 6, fill: stroke, filter: pointsToDraw },
  };
}

function previousOptions(line: LineStyle | undefined): uPlot.Series {
  const stroke = `color-mix(in srgb, ${resolveCssColor(line?.color ?? "--muted")} 55%, transparent)`;
  return { label: `previous ${line?.label ?? ""}`, stroke, width: 1.5, dash: [1, 4], points: { show: false } };
}

function pointsToDraw(self: uPlot, series: number): number[] {
  return isolatedPoints(self.data[series] as readonly (number | null | undefined)[]);
}

function finishDrag(self: uPlot, { onZoom }: PlotInput): void {
  const { left, width } = self.select;
  if (width < MIN_DRAG_PX) return;
  const [from, until] = [self.posToVal(left, "x") * 1000, self.posToVal(left + width, "x") * 1000];
  self.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  onZoom?.({ from, until });
}

/** A click that ends no drag picks the moment under the mouse. */
function listenForClicks(self: uPlot, input: () => PlotInput): void {
  let pressedAt = 0;
  self.over.addEventListener("mousedown", (event) => {
    pressedAt = event.clientX;
  });
  self.over.addEventListener("click", (event) => {
    const place = self.cursor.idx;
    if (place !== null && place !== undefined && Math.abs(event.clientX - pressedAt) < MIN_DRAG_PX)
      input().onPick?.(place);
  });
}

function drawPicked(self: uPlot, picked: TimeSpan | null): void {
  if (picked === null) return;
  const { ctx, bbox } = self;
  const left = Math.max(bbox.left, self.valToPos(picked.from / 1000, "x", true));
  const right = Math.min(bbox.left + bbox.width, self.valToPos(picked.until / 1000, "x", true));
  ctx.save();
  ctx.fillStyle = resolveCssColor("--accent-soft");
  ctx.fillRect(left, bbox.top, Math.max(2, right - left), bbox.height);
  ctx.restore();
}

function drawMarks(self: uPlot, marks: readonly ChartMark[]): void {
  const { ctx, bbox } = self;
  const scale = devicePixelRatio;
  const [times] = self.data;
  const right = bbox.left + bbox.width;
  // The last point stands for a whole step: marks within it belong to its place.
  const end = (times.at(-1) ?? 0) + (times[1] ?? 0) - (times[0] ?? 0);
  let free = -Infinity;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = resolveCssColor("--text");
  ctx.font = `${11 * scale}px system-ui, sans-serif`;
  ctx.setLineDash([3 * scale, 3 * scale]);
  for (const { at, text } of marks) {
    const x = Math.min(right, self.valToPos(at / 1000, "x", true));
    if (x < bbox.left || at / 1000 > end) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    // Labels do not overlap: the list below the chart has all of them.
    const label = text.slice(0, MAX_MARK_CHARACTERS);
    const width = ctx.measureText(label).width;
    const start = x + width + 6 * scale > right ? x - width - 4 * scale : x + 4 * scale;
    if (start > free) {
      ctx.fillText(label, start, bbox.top + 10 * scale);
      free = start + width + 8 * scale;
    }
  }
  ctx.restore();
}
