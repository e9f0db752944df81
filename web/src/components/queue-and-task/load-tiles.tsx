import type { LoadDetail } from "@/api/queue-and-task-detail";
import { JobsLink } from "@/components/job-links";
import { MetricTile, MetricTiles } from "@/components/metric-tile";
import { WaitDuration } from "@/components/relative-time-and-duration";
import { formatCount, formatPercent, formatPlural, formatRate, formatShort } from "@/lib/format-number";
import { formatDuration } from "@/lib/format-time";
import { isHighFailureRate } from "@/lib/is-high-failure-rate";
import type { JobsSearch } from "@/routes/jobs.search-params";

interface LoadTilesProps {
  detail: LoadDetail;
  /** The jobs that the numbers count. */
  filter: JobsSearch;
}

/** The state now of a queue or a task. Every number leads to its jobs. */
export function LoadTiles({ detail, filter }: LoadTilesProps) {
  const { queue, rates, now, hour, running, workers } = detail;
  const slots = workers.reduce((sum, worker) => sum + worker.slots, 0);
  const last5m = { ...filter, since: "5min" };
  return (
    <MetricTiles>
      {queue ? (
        <MetricTile
          label="Pending"
          note={`${formatShort(queue.stats.SCHEDULED)} scheduled, ${formatShort(queue.stats.BLOCKED)} blocked`}
        >
          <JobsLink filter={{ ...filter, state: "PENDING" }}>{formatShort(queue.stats.PENDING)}</JobsLink>
        </MetricTile>
      ) : (
        <MetricTile label="Enqueued, last hour" note={`${formatShort(hour.started)} started`}>
          <JobsLink filter={{ ...filter, since: "1h" }}>{formatShort(hour.enqueued)}</JobsLink>
        </MetricTile>
      )}
      {queue && (
        <MetricTile label="Oldest wait" note={drainNote(rates)}>
          <JobsLink filter={{ ...filter, state: "PENDING" }}>
            <WaitDuration ms={queue.oldest_pending_ms} at={detail.at} />
          </JobsLink>
        </MetricTile>
      )}
      <MetricTile
        label="Running"
        note={
          running.oldest_ms === null
            ? `of ${formatPlural(slots, "slot")}`
            : `longest for ${formatDuration(running.oldest_ms)}`
        }
      >
        <JobsLink filter={{ ...filter, state: "PROCESSING" }}>{formatShort(running.count)}</JobsLink>
      </MetricTile>
      <MetricTile
        label="Completed, last 5 min"
        note={`in ${formatRate(rates.arrivals_per_second)}, out ${formatRate(rates.services_per_second)}`}
      >
        <JobsLink filter={{ ...last5m, state: "COMPLETED" }}>{formatShort(now.completed)}</JobsLink>
      </MetricTile>
      <MetricTile
        label="Failure rate, last 5 min"
        note={`${formatPlural(now.failed, "attempt")}, ${formatCount(now.dead)} dead-lettered`}
        isAlarming={isHighFailureRate(now.failure_rate)}
      >
        <JobsLink filter={{ ...last5m, state: "FAILED" }}>
          {now.failure_rate === null ? "–" : formatPercent(now.failure_rate)}
        </JobsLink>
      </MetricTile>
      <MetricTile label="Running time, p95" note={runNote(detail)}>
        <JobsLink filter={{ ...filter, state: "COMPLETED" }}>
          {spanOf(detail.recent_runs.p95_ms ?? now.run.p95_ms)}
        </JobsLink>
      </MetricTile>
    </MetricTiles>
  );
}

function spanOf(ms: number | null): string {
  return ms === null ? "–" : formatDuration(ms);
}

function runNote({ recent_runs }: LoadDetail): string {
  const { sample, p50_ms, max_ms } = recent_runs;
  return sample === 0 ? "no run yet" : `p50 ${spanOf(p50_ms)}, longest ${spanOf(max_ms)}`;
}

function drainNote({ arrivals_per_second, services_per_second, drain_ms }: LoadDetail["rates"]): string {
  if (drain_ms !== null && drain_ms > 0) return `empty in ${formatDuration(drain_ms)}`;
  return arrivals_per_second > services_per_second ? "growing" : "";
}
