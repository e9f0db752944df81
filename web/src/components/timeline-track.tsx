import { classNames } from "@/lib/class-names";

/** A segment of a track; times in milliseconds. */
export interface TimelineSegment {
  readonly from: number;
  readonly until: number;
  readonly className: string;
  /** The tooltip. */
  readonly title: string;
}

/** The colour of a wait: lighter than an attempt. */
export const WAIT_CLASS = "bg-line-strong/45";

/** Segments of time on a track from `from` to `until`. Short segments have a minimum width. */
export function TimelineTrack({
  from,
  until,
  segments,
  className,
}: {
  from: number;
  until: number;
  segments: readonly TimelineSegment[];
  className?: string;
}) {
  const span = Math.max(1, until - from);
  const share = (ms: number) => Math.min(100, Math.max(0, ((ms - from) / span) * 100));
  return (
    <div
      aria-hidden
      className={classNames(
        "relative h-2.5 rounded-full bg-sunken contrast-more:outline-1 forced-colors:outline-1",
        className,
      )}
    >
      {segments.map((stretch) => (
        <div
          key={`${stretch.className}-${stretch.from}`}
          title={stretch.title}
          className={classNames(
            "absolute inset-y-0 min-w-[3px] rounded-full forced-color-adjust-none",
            stretch.className,
          )}
          style={{
            left: `min(${share(stretch.from)}%, 100% - 3px)`,
            width: `${Math.max(0, share(stretch.until) - share(stretch.from))}%`,
          }}
        />
      ))}
    </div>
  );
}
