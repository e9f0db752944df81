import type { ReactNode } from "react";

import { classes } from "@/lib/classes";
import { useMedia } from "@/lib/media";
import { tiny } from "@/lib/numbers";

type Tone = "completed" | "failed" | "scheduled";

/** From nothing to the most. The figure stands in every cell, so that no colour has to be told from another. */
const SHADES: Record<Tone, readonly string[]> = {
  completed: ["bg-sunken", "bg-completed/12", "bg-completed/25", "bg-completed/45", "bg-completed text-surface"],
  failed: ["bg-sunken", "bg-failed/12", "bg-failed/25", "bg-failed/45", "bg-failed text-surface"],
  scheduled: ["bg-sunken", "bg-scheduled/12", "bg-scheduled/25", "bg-scheduled/45", "bg-scheduled text-surface"],
};
/** No line is as wide as the space between two words. */
const ONE_WORD_A_LINE = "[word-spacing:100vw]";
const LEVELS = [1, 2, 3, 4] as const;

export interface HeatCell {
  readonly value: number;
  /** All figures, in words. */
  readonly told: string;
}

export interface HeatLine {
  readonly name: string;
  /** One for each column; null where there is nothing to tell of. */
  readonly cells: readonly (HeatCell | null)[];
}

interface HeatmapProps {
  label: string;
  tone: Tone;
  columns: readonly string[];
  lines: readonly HeatLine[];
  /** Beside the legend: whose clock it is. */
  note: string;
}

/** A table that is coloured by how much is in it. Where it is too wide for the window, it is turned over. */
export function Heatmap({ label, tone, columns, lines, note }: HeatmapProps) {
  const isWide = useMedia("(min-width: 1024px)");
  // A single job is no heat, though nothing else may come.
  const most = Math.max(LEVELS.length, ...lines.flatMap(({ cells }) => cells.map((cell) => cell?.value ?? 0)));
  const [across, down] = isWide
    ? [columns, lines]
    : [
        lines.map(({ name }) => name),
        columns.map((name, at) => ({ name, cells: lines.map((line) => line.cells[at]) })),
      ];
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
                className={classes("h-5 align-bottom leading-tight font-normal", !isWide && ONE_WORD_A_LINE)}
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

function Cell({ cell, shade }: { cell: HeatCell | null; shade: string | undefined }) {
  if (cell === null) return <td />;
  return (
    <td
      title={cell.told}
      className={classes("figures h-6 rounded-sm text-center leading-none forced-color-adjust-none", shade)}
    >
      <span className={cell.value === 0 ? "sr-only" : ""}>{tiny(cell.value)}</span>
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
          up to {tiny(upTo(level, most))}
        </Shade>
      ))}
      <span className="ml-auto">{note}</span>
    </figcaption>
  );
}

function Shade({ className, children }: { className: string | undefined; children: ReactNode }) {
  return (
    <span className="flex items-center gap-1.5">
      <span aria-hidden className={classes("size-3 rounded-sm border forced-color-adjust-none", className)} />
      {children}
    </span>
  );
}

/** Quarters of the most. */
export function levelOf(value: number, most: number): number {
  return value === 0 ? 0 : Math.ceil((4 * value) / most);
}

function upTo(level: number, most: number): number {
  return Math.floor((level * most) / 4);
}
