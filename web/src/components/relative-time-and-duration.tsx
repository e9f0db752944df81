import { formatClock, formatDay, formatDuration, formatExact, formatRelative } from "@/lib/format-time";
import { useNow } from "@/lib/server-clock";
import { useTimeZone } from "@/lib/time-zone-setting";

/** A relative time ("3 min ago"); the exact time is its title. */
export function RelativeTime({ at }: { at: string | null | undefined }) {
  const now = useNow();
  const zone = useTimeZone();
  if (!at) return <span className="text-muted">–</span>;
  return (
    <time dateTime={at} title={formatExact(at, zone)} className="tabular-nums whitespace-nowrap">
      {formatRelative(at, now)}
    </time>
  );
}

/** "18 Nov 03:00:12", in the zone of the settings; the exact time is its title. */
export function AbsoluteTime({ at }: { at: string | null | undefined }) {
  const zone = useTimeZone();
  if (!at) return <span className="text-muted">–</span>;
  return (
    <time dateTime={at} title={formatExact(at, zone)} className="tabular-nums whitespace-nowrap">
      {formatDay(at, zone)} {formatClock(at, zone)}
    </time>
  );
}

/** A duration between two times, or until now. */
export function Duration({ from, until }: { from: string; until?: string | null }) {
  const now = useNow();
  const end = until ? new Date(until).getTime() : now;
  return <span className="tabular-nums whitespace-nowrap">{formatDuration(end - new Date(from).getTime())}</span>;
}

/** A wait that was `ms` long at the time `at` and continues. */
export function WaitDuration({ ms, at }: { ms: number | null; at: string }) {
  if (ms === null) return <span className="text-muted">–</span>;
  return <Duration from={new Date(Date.parse(at) - ms).toISOString()} />;
}
