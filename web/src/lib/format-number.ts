/** Formats numbers: counts, rates, percentages, bytes. */

const grouped = new Intl.NumberFormat("en-US");

/** 12345 as "12,345". */
export function formatCount(value: number): string {
  return grouped.format(value);
}

/** A short count: "999", "12.3 k", "4.5 M". */
export function formatShort(value: number): string {
  if (Math.abs(value) < 10_000) return grouped.format(value);
  const [size, unit] =
    Math.abs(value) < 1_000_000 ? [1000, "k"] : Math.abs(value) < 1e9 ? [1_000_000, "M"] : [1e9, "G"];
  const scaled = value / size;
  return `${Math.abs(scaled) < 100 ? scaled.toFixed(1) : Math.round(scaled).toString()} ${unit}`;
}

/** A count of at most four characters: "999", "1.2k", "12k", "4.5M". */
export function formatTiny(value: number): string {
  let scaled = value;
  for (const unit of ["", "k", "M", "G"]) {
    if (scaled < 999.5)
      return `${unit !== "" && scaled < 9.95 ? scaled.toFixed(1) : Math.round(scaled).toString()}${unit}`;
    scaled /= 1000;
  }
  return "many";
}

/** "1 job", "2 jobs". */
export function formatPlural(value: number, one: string, many = `${one}s`): string {
  return `${formatCount(value)} ${value === 1 ? one : many}`;
}

/** "3.2/s", "12/min" where less than one a second. */
export function formatRate(perSecond: number): string {
  if (perSecond === 0) return "0/s";
  if (perSecond < 1 / 60) return `${(perSecond * 3600).toFixed(1)}/h`;
  if (perSecond < 1) return `${(perSecond * 60).toFixed(1)}/min`;
  return perSecond < 100 ? `${perSecond.toFixed(1)}/s` : `${formatShort(Math.round(perSecond))}/s`;
}

/** A share as a percentage. Small non-zero shares are "< 0.1 %". */
export function formatPercent(share: number): string {
  const value = share * 100;
  if (value > 0 && value < 0.1) return "< 0.1 %";
  return `${value >= 10 || Number.isInteger(value) ? Math.round(value) : value.toFixed(1)} %`;
}

/** Memory: "312 B", "4.2 MB". */
export function formatBytes(value: number): string {
  for (const [size, unit] of [
    [1e9, "GB"],
    [1e6, "MB"],
    [1e3, "kB"],
  ] as const) {
    if (value >= size) return `${(value / size).toFixed(1)} ${unit}`;
  }
  return `${value} B`;
}
