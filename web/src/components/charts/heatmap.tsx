import type { ReactNode } from "react";

import { classNames } from "@/lib/class-names";
import { formatTiny } from "@/lib/format-number";
import { useMediaQuery } from "@/lib/use-media-query";

type Tone = "completed" | "failed" | "scheduled";

/** From zero to the maximum. Every cell shows its number, so that colour is not the only cue. */
const SHADES: Record<Tone, readonly string[]> = {
  completed: ["bg-sunken", "bg-completed/12", "bg-completed/25", "bg-completed/45", "bg-completed text-surface"],
  failed: ["bg-sunken", "bg-failed/12", "bg-failed/25", "bg-failed/45", "bg-failed text-surface"],
  scheduled: ["bg-sunken", "bg-scheduled/12", "bg-scheduled/25", "bg-scheduled/45", "bg-scheduled text-surface"],
};
/** Breaks the line after every word: a space wider than any line. */
const ONE_WORD_A_LINE = "[word-spacing:100vw]";
const LEVELS = [1, 2, 3, 4] as const;

export interface HeatmapCell {
  readonly value: number;
  /** The values as text, shown as the title. */
  readonly description: string;
}

export interface HeatmapRow {
  readonly name: string;
  /** One per column; null if there is no data. */
  readonly cells: readonly (HeatmapCell | null)[];
}

interface HeatmapProps {
  label: string;
  tone: Tone;
  columns: readonly string[];
  rows: readonly HeatmapRow[];
  /** Next to the legend: the time zone. */
  note: string;
}

/** A table whose cells are coloured by value. Transposed if it is too wide for the window. */
export function Heatmap({ label, tone, columns, rows, note }: HeatmapProps) {
  const isWide = useMediaQuery("(min-width: 1024px)");
  // A minimum scale: a single job is not shown as a peak.
  const most = Math.max(LEVELS.length, ...rows.flatMap(({ cells }) => cells.map((cell) => cell?.value ?? 0)));
  const [across, down] = isWide
    ? [columns, rows]
    : [rows.map(({ name }) => name), columns.map((name, at) => ({ name, cells: rows.map((line) => line.cells[at]) }))];
  return (
    <figure aria-label={label} className="min-w-0">
      <table className="w-full table-fixed border-separate border-spacing-0.5 text-[11px]">
        <caption className="sr-only">{label}</caption>
        <thead>
          <tr className="text-muted">
            <td className={isWide ? "w-14" : "w-8"} />
            {across.map((name) => (
              <th
                key={name}
                scope="col"
                className={classNames("h-5 align-bottom leading-tight font-normal", !isWide && ONE_WORD_A_LINE)}
              >
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {down.map(({ name, cells }) => (
            <tr key={name}>
              <th scope="row" className="pr-1 text-left font-normal whitespace-nowrap text-muted">
                {name}
              </th>
              {cells.map((cell, at) => (
                <Cell key={across[at]} cell={cell ?? null} shade={SHADES[tone][levelOf(cell?.value ?? 0, most)]} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      <Legend tone={tone} most={most} note={note} />
    </figure>
  );
}

function Cell({ cell, shade }: { cell: HeatmapCell | null; shade: string | undefined }) {
  if (cell === null) return <td />;
  return (
    <td
      title={cell.description}
      className={classNames("tabular-nums h-6 rounded-sm text-center leading-none forced-color-adjust-none", shade)}
    >
      <span className={cell.value === 0 ? "sr-only" : ""}>{formatTiny(cell.value)}</span>
    </td>
  );
}

function Legend({ tone, most, note }: { tone: Tone; most: number; note: string }) {
  const shades = LEVELS.filter((level) => upTo(level, most) > upTo(level - 1, most));
  return (
    <figcaption className="mt-2 flex flex-wrap items-center gap-x-3 gap-y-1 text-xs text-muted">
      <Shade className={SHADES[tone][0]}>none</Shade>
      {shades.map((level) => (
        <Shade key={level} className={SHADES[tone][level]}>
          up to {formatTiny(upTo(level, most))}
        </Shade>
      ))}
      <span className="ml-auto">{note}</span>
    </figcaption>
  );
}

function Shade({ className, children }: { className: string | undefined; children: ReactNode }) {
  return (
    <span className="flex items-center gap-1.5">
      <span aria-hidden className={classNames("size-3 rounded-sm border forced-color-adjust-none", className)} />
      {children}
    </span>
  );
}

/** The shade of a value: quarters of the maximum. */
export function levelOf(value: number, most: number): number {
  return value === 0 ? 0 : Math.ceil((4 * value) / most);
}

function upTo(level: number, most: number): number {
  return Math.floor((level * most) / 4);
}
