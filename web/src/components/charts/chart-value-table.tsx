/** The values of a chart as a table, for screen readers. */

import { formatValue } from "@/components/charts/chart-legend";
import type { ChartMark, Series } from "@/components/charts/chart-types";
import { formatExact, type TimeZone } from "@/lib/format-time";

/** Number of rows: the latest. */
const TABLE_ROWS = 24;

interface ChartValueTableProps {
  label: string;
  times: readonly number[];
  series: readonly Series[];
  format: (value: number) => string;
  previousLabel: string;
  marks: readonly ChartMark[];
  zone: TimeZone;
}

export function ChartValueTable({ label, times, series, format, previousLabel, marks, zone }: ChartValueTableProps) {
  const first = Math.max(0, times.length - TABLE_ROWS);
  const columns = series.flatMap(({ label: name, values, previous }) => [
    { name, values },
    ...(previous === undefined ? [] : [{ name: `${name}, ${previousLabel}`, values: previous }]),
  ]);
  return (
    <div className="sr-only">
      <table>
        <caption>{label}</caption>
        <thead>
          <tr>
            <th scope="col">Time</th>
            {columns.map(({ name }) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {times.slice(first).map((at, row) => (
            <tr key={at}>
              <th scope="row">{formatExact(at, zone)}</th>
              {columns.map(({ name, values }) => (
                <td key={name}>{formatValue(values[first + row], format)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {marks.length > 0 && (
        <ul aria-label={`Marks of ${label}`}>
          {marks.map(({ at, text }) => (
            <li key={`${at} ${text}`}>
              {formatExact(at, zone)}: {text}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
