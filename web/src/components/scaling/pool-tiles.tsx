import type { Scaling } from "@/api/scaling";
import { JobsLink } from "@/components/job-links";
import { MetricTile, MetricTiles } from "@/components/metric-tile";
import { formatCount, formatShort } from "@/lib/format-number";
import { formatDuration } from "@/lib/format-time";

/** The pool as the latest planning round has observed it. */
export function PoolTiles({ scaling: { latest, settings } }: { scaling: Scaling }) {
  const { min_workers: min, max_workers: max, target_wait_ms: target } = settings;
  const isAtMax = latest !== null && max !== null && latest.wanted >= max;
  const isLate = latest?.oldest_wait_ms != null && target !== null && latest.oldest_wait_ms > target;
  const count = (of: "wanted" | "running" | "booting" | "draining") =>
    latest === null ? "–" : formatCount(latest[of]);
  return (
    <MetricTiles>
      <MetricTile
        label="Wanted"
        note={min !== null && max !== null && (isAtMax ? `at the maximum of ${max}` : `limits ${min} to ${max}`)}
        isAlarming={isAtMax && isLate}
      >
        {count("wanted")}
      </MetricTile>
      <MetricTile label="Running" note="take jobs">
        {count("running")}
      </MetricTile>
      <MetricTile label="Booting" note="not registered yet">
        {count("booting")}
      </MetricTile>
      <MetricTile label="Draining" note="finish their jobs">
        {count("draining")}
      </MetricTile>
      <MetricTile label="Backlog" note={latest !== null && `${formatShort(latest.high)} of high priority`}>
        <JobsLink filter={{ state: "PENDING" }}>{latest === null ? "–" : formatShort(latest.backlog)}</JobsLink>
      </MetricTile>
      <MetricTile label="Oldest wait" note={target !== null && `target ${formatDuration(target)}`} isAlarming={isLate}>
        {latest?.oldest_wait_ms == null ? "–" : formatDuration(latest.oldest_wait_ms)}
      </MetricTile>
    </MetricTiles>
  );
}
