import { classes } from "@/lib/classes";

/** A part of a track, in milliseconds. */
export interface Stretch {
  readonly from: number;
  readonly until: number;
  readonly className: string;
  /** What it is, shown when pointed at. */
  readonly title: string;
}

/** How a wait looks: lighter than what runs. */
export const WAIT = "bg-line-strong/45";

/** Stretches of time on a line that spans `from` to `until`. What is short is still seen. */
export function Track({
  from,
  until,
  stretches,
  className,
}: {
  from: number;
  until: number;
  stretches: readonly Stretch[];
  className?: string;
}) {
  const span = Math.max(1, until - from);
  const share = (ms: number) => Math.min(100, Math.max(0, ((ms - from) / span) * 100));
  return (
    <div
      aria-hidden
      className={classes(
        "relative h-2.5 rounded-full bg-sunken contrast-more:outline-1 forced-colors:outline-1",
        className,
      )}
    >
      {stretches.map((stretch) => (
        <div
          key={`${stretch.className}-${stretch.from}`}
          title={stretch.title}
          className={classes("absolute inset-y-0 min-w-[3px] rounded-full forced-color-adjust-none", stretch.className)}
          style={{
            left: `min(${share(stretch.from)}%, 100% - 3px)`,
            width: `${Math.max(0, share(stretch.until) - share(stretch.from))}%`,
          }}
        />
      ))}
    </div>
  );
}
