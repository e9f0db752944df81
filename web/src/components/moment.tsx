import { useNow } from "@/lib/now";
import { duration, exact, relative } from "@/lib/time";
import { useZone } from "@/lib/zone";

/** A moment as people say it; the exact time is its title. */
export function Moment({ at }: { at: string | null | undefined }) {
  const now = useNow();
  const zone = useZone();
  if (!at) return <span className="text-muted">–</span>;
  return (
    <time dateTime={at} title={exact(at, zone)} className="figures whitespace-nowrap">
      {relative(at, now)}
    </time>
  );
}

/** How long something has gone on: from a moment until another, or until now. */
export function Span({ from, until }: { from: string; until?: string | null }) {
  const now = useNow();
  const end = until ? new Date(until).getTime() : now;
  return <span className="figures whitespace-nowrap">{duration(end - new Date(from).getTime())}</span>;
}

/** How long somebody has waited who had waited so long at a moment, and waits on. */
export function Waited({ ms, at }: { ms: number | null; at: string }) {
  if (ms === null) return <span className="text-muted">–</span>;
  return <Span from={new Date(Date.parse(at) - ms).toISOString()} />;
}
