import { Link } from "@tanstack/react-router";

import type { Overview } from "@/api/overview";
import { JobsLink } from "@/components/links";
import { Waited } from "@/components/moment";
import { Tile, Tiles } from "@/components/tile";
import { count, percent, plural, rate, short } from "@/lib/numbers";
import { failsOften } from "@/lib/queues";

/** What the server takes for the present: rates and `lately` are of these minutes. */
const LATELY = "5 min";

/** How it stands now. */
export function OverviewTiles({ overview }: { overview: Overview }) {
  const { stats, lately, workers } = overview;
  const failures = lately.failure_rate;
  return (
    <Tiles>
      <Tile label="Pending" note={`${short(stats.SCHEDULED)} scheduled, ${short(stats.BLOCKED)} blocked`}>
        <JobsLink filter={{ state: "PENDING" }}>{short(stats.PENDING)}</JobsLink>
      </Tile>
      <Tile label="Oldest wait" note={`${rate(overview.arrivals_per_second)} come in`}>
        <JobsLink filter={{ state: "PENDING" }}>
          <Waited ms={overview.oldest_wait_ms} at={overview.at} />
        </JobsLink>
      </Tile>
      <Tile label="Processing" note={workers.slots > 0 ? `of ${plural(workers.slots, "slot")}` : "no slots"}>
        <JobsLink filter={{ state: "PROCESSING" }}>{short(stats.PROCESSING)}</JobsLink>
      </Tile>
      <Tile label="Throughput" note={`${short(lately.completed)} completed in ${LATELY}`}>
        <JobsLink filter={{ state: "COMPLETED" }}>{rate(overview.services_per_second)}</JobsLink>
      </Tile>
      <Tile
        label={`Failing, last ${LATELY}`}
        note={`${plural(lately.failed, "attempt")}, ${count(lately.dead)} for good`}
        isAlarming={failsOften(failures)}
      >
        <Link to="/dead" className="hover:underline">
          {failures === null ? "–" : percent(failures)}
        </Link>
      </Tile>
      <Tile
        label="Workers"
        note={
          workers.slots > 0 ? `${percent(workers.busy / workers.slots)} busy${drained(workers)}` : "none is running"
        }
        isAlarming={workers.alive === 0}
      >
        <Link to="/workers" className="hover:underline">
          {count(workers.alive)}
        </Link>
      </Tile>
    </Tiles>
  );
}

function drained({ draining }: Overview["workers"]): string {
  return draining > 0 ? `, ${draining} draining` : "";
}
