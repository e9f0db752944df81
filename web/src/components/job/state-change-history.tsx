import type { HistoryEntry } from "@/api/job-detail";
import { JobStateBadge } from "@/components/badges";
import { RelativeTime } from "@/components/relative-time-and-duration";
import { Table, Td, Th } from "@/components/table";
import { formatDuration, formatExact } from "@/lib/format-time";
import { useTimeZone } from "@/lib/time-zone-setting";
import { useMediaQuery } from "@/lib/use-media-query";

interface StateChangeHistoryProps {
  entries: readonly HistoryEntry[];
}

/** Every state change, oldest first, with the time since the previous one. */
export function StateChangeHistory({ entries }: StateChangeHistoryProps) {
  const isWide = useMediaQuery("(min-width: 768px)");
  return isWide ? <HistoryTable entries={entries} /> : <HistoryList entries={entries} />;
}

function HistoryTable({ entries }: StateChangeHistoryProps) {
  const zone = useTimeZone();
  return (
    <Table label="History">
      <thead>
        <tr>
          <Th>When</Th>
          <Th>After</Th>
          <Th>What</Th>
          <Th>State</Th>
          <Th>Attempt</Th>
          <Th>Worker</Th>
          <Th>Note</Th>
        </tr>
      </thead>
      <tbody>
        {entries.map((entry, place) => (
          <tr key={place}>
            <Td className="whitespace-nowrap">
              <span className="tabular-nums">{formatExact(entry.at, zone)}</span>
              <span className="ml-2 text-xs text-muted">
                <RelativeTime at={entry.at} />
              </span>
            </Td>
            <Td className="tabular-nums whitespace-nowrap text-muted">{timeSincePrevious(entries, place)}</Td>
            <Td>{verbOf(entry)}</Td>
            <Td>{entry.state && <JobStateBadge state={entry.state} />}</Td>
            <Td className="tabular-nums">{entry.attempt}</Td>
            <Td className="font-mono text-xs">{entry.worker}</Td>
            <Td className="min-w-48 text-muted">
              <span className="break-words whitespace-pre-wrap">{entry.note}</span>
            </Td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

/** Two lines: transition and time; actor and reason. */
function HistoryList({ entries }: StateChangeHistoryProps) {
  const zone = useTimeZone();
  return (
    <ol aria-label="History" className="divide-y divide-line/60">
      {entries.map((entry, place) => (
        <li key={place} className="flex flex-col gap-0.5 px-4 py-2">
          <div className="flex items-center gap-2 text-[13px]">
            {entry.state && <JobStateBadge state={entry.state} />}
            <span className="font-medium">{verbOf(entry)}</span>
            <span className="tabular-nums ml-auto text-xs text-muted">{timeSincePrevious(entries, place)}</span>
          </div>
          <div className="tabular-nums flex flex-wrap gap-x-3 text-xs text-muted">
            <span>{formatExact(entry.at, zone)}</span>
            {entry.attempt !== null && <span>attempt {entry.attempt}</span>}
            {entry.worker && <span className="font-mono">{entry.worker}</span>}
          </div>
          {entry.note && <p className="text-xs break-words whitespace-pre-wrap">{entry.note}</p>}
        </li>
      ))}
    </ol>
  );
}

function verbOf({ verb }: HistoryEntry): string {
  return verb.replaceAll("_", " ");
}

function timeSincePrevious(entries: readonly HistoryEntry[], place: number): string {
  const [before, entry] = [entries[place - 1], entries[place]];
  return before && entry ? `+${formatDuration(Date.parse(entry.at) - Date.parse(before.at))}` : "";
}
