/** What a time-series chart shows. */

export interface Series {
  readonly label: string;
  /** A CSS variable of the palette: "--completed". */
  readonly color: string;
  readonly values: readonly (number | null)[];
  /** The values of an earlier period at the same times of day, drawn dotted in the same colour. */
  readonly previous?: readonly (number | null)[];
  readonly isFilled?: boolean;
  /** Each value holds until the next: counts that change at once. */
  readonly isStepped?: boolean;
  /** Dashed, so that lines differ by more than colour. */
  readonly dash?: readonly number[];
}

/** A vertical line: a deploy, a note. */
export interface ChartMark {
  readonly at: number;
  readonly text: string;
}

/** A moment or a range, in ms since 1970. */
export interface TimeSpan {
  readonly from: number;
  readonly until: number;
}

export interface ChartProps {
  /** The accessible name. */
  label: string;
  /** Milliseconds since 1970, ascending. */
  times: readonly number[];
  series: readonly Series[];
  format: (value: number) => string;
  /** The labels of the axis, all in one unit. `format` by default. */
  formatTicks?: (ticks: readonly number[]) => string[];
  height?: number;
  /** The name of the earlier period: "previous day". */
  previousLabel?: string;
  marks?: readonly ChartMark[];
  /** Outliers may switch the axis to a logarithmic scale. */
  canBeLogarithmic?: boolean;
  /** The moment whose jobs are offered below the chart. */
  picked?: TimeSpan | null;
  /** A click on a moment, or Enter. */
  onPick?: (span: TimeSpan) => void;
  /** A range was dragged over, or selected with shift and arrows. */
  onZoom?: (span: TimeSpan) => void;
}
