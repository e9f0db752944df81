import type { HistoryEntry } from "@/api/job";
import { StateBadge } from "@/components/badge";
import { Moment } from "@/components/moment";
import { Table, Td, Th } from "@/components/table";
import { useMedia } from "@/lib/media";
import { duration, exact } from "@/lib/time";
import { useZone } from "@/lib/zone";

interface HistoryProps {
  entries: readonly HistoryEntry[];
}

/** Every change of state, the oldest first, with the time since the one before. */
export function History({ entries }: HistoryProps) {
  const isWide = useMedia("(min-width: 768px)");
  return isWide ? <WideHistory entries={entries} /> : <NarrowHistory entries={entries} />;
}

function WideHistory({ entries }: HistoryProps) {
  const zone = useZone();
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
              <span className="figures">{exact(entry.at, zone)}</span>
              <span className="ml-2 text-xs text-muted">
                <Moment at={entry.at} />
              </span>
            </Td>
            <Td className="figures whitespace-nowrap text-muted">{sinceBefore(entries, place)}</Td>
            <Td>{verbOf(entry)}</Td>
            <Td>{entry.state && <StateBadge state={entry.state} />}</Td>
            <Td className="figures">{entry.attempt}</Td>
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

/** What happened and when, then by whom and why. */
function NarrowHistory({ entries }: HistoryProps) {
  const zone = useZone();
  return (
    <ol aria-label="History" className="divide-y divide-line/60">
      {entries.map((entry, place) => (
        <li key={place} className="flex flex-col gap-0.5 px-4 py-2">
          <div className="flex items-center gap-2 text-[13px]">
            {entry.state && <StateBadge state={entry.state} />}
            <span className="font-medium">{verbOf(entry)}</span>
            <span className="figures ml-auto text-xs text-muted">{sinceBefore(entries, place)}</span>
          </div>
          <div className="figures flex flex-wrap gap-x-3 text-xs text-muted">
            <span>{exact(entry.at, zone)}</span>
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

function sinceBefore(entries: readonly HistoryEntry[], place: number): string {
  const [before, entry] = [entries[place - 1], entries[place]];
  return before && entry ? `+${duration(Date.parse(entry.at) - Date.parse(before.at))}` : "";
}
