import { Link } from "@tanstack/react-router";

import type { Overview } from "@/api/overview";
import { JobsLink } from "@/components/job-links";
import { MetricTile, MetricTiles } from "@/components/metric-tile";
import { WaitDuration } from "@/components/relative-time-and-duration";
import { formatCount, formatPercent, formatPlural, formatRate, formatShort } from "@/lib/format-number";
import { isHighFailureRate } from "@/lib/is-high-failure-rate";

/** The window of the server's rates and of `last_5m`. */
const RATE_WINDOW = "5 min";

/** The current state in numbers: jobs, rates, waiting times, workers. */
export function SummaryTiles({ overview }: { overview: Overview }) {
  const { stats, last_5m, workers } = overview;
  const failures = last_5m.failure_rate;
  // Workers claim jobs ahead of their slots: the jobs beyond the number of slots cannot be running.
  const running = workers.slots > 0 ? Math.min(stats.PROCESSING, workers.slots) : stats.PROCESSING;
  const ahead = stats.PROCESSING - running;
  return (
    <MetricTiles>
      <MetricTile
        label="Pending"
        note={`${formatShort(stats.SCHEDULED)} scheduled, ${formatShort(stats.BLOCKED)} blocked`}
      >
        <JobsLink filter={{ state: "PENDING" }}>{formatShort(stats.PENDING)}</JobsLink>
      </MetricTile>
      <MetricTile label="Oldest wait" note={`${formatRate(overview.arrivals_per_second)} arriving`}>
        <JobsLink filter={{ state: "PENDING" }}>
          <WaitDuration ms={overview.oldest_wait_ms} at={overview.at} />
        </JobsLink>
      </MetricTile>
      <MetricTile
        label="Processing"
        note={
          workers.slots > 0
            ? `of ${formatPlural(workers.slots, "slot")}${ahead > 0 ? `, ${formatShort(ahead)} claimed ahead` : ""}`
            : "no slots"
        }
      >
        <JobsLink filter={{ state: "PROCESSING" }}>{formatShort(running)}</JobsLink>
      </MetricTile>
      <MetricTile label="Throughput" note={`${formatShort(last_5m.completed)} completed in ${RATE_WINDOW}`}>
        <JobsLink filter={{ state: "COMPLETED" }}>{formatRate(overview.services_per_second)}</JobsLink>
      </MetricTile>
      <MetricTile
        label={`Failure rate, last ${RATE_WINDOW}`}
        note={`${formatPlural(last_5m.failed, "attempt")}, ${formatCount(last_5m.dead)} dead-lettered`}
        isAlarming={isHighFailureRate(failures)}
      >
        <Link to="/dead" className="hover:underline">
          {failures === null ? "–" : formatPercent(failures)}
        </Link>
      </MetricTile>
      <MetricTile
        label="Workers"
        note={
          workers.slots > 0
            ? `${formatPercent(workers.busy / workers.slots)} busy${drainingSuffix(workers)}`
            : "none running"
        }
        isAlarming={workers.alive === 0}
      >
        <Link to="/workers" className="hover:underline">
          {formatCount(workers.alive)}
        </Link>
      </MetricTile>
    </MetricTiles>
  );
}

function drainingSuffix({ draining }: Overview["workers"]): string {
  return draining > 0 ? `, ${draining} draining` : "";
}
