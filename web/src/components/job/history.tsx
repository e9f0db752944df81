import type { HistoryEntry } from "@/api/job";
import { StateBadge } from "@/components/badge";
import { Table, Td, Th } from "@/components/table";
import { Moment } from "@/components/moment";
import { duration, exact } from "@/lib/time";
import { useZone } from "@/lib/zone";

/** Every change of state, the oldest first, with the time since the one before. */
export function History({ entries }: { entries: readonly HistoryEntry[] }) {
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
        {entries.map((entry, place) => {
          const before = entries[place - 1];
          return (
            <tr key={place}>
              <Td className="whitespace-nowrap">
                <span className="figures">{exact(entry.at, zone)}</span>
                <span className="ml-2 text-xs text-muted">
                  <Moment at={entry.at} />
                </span>
              </Td>
              <Td className="figures whitespace-nowrap text-muted">
                {before ? `+${duration(new Date(entry.at).getTime() - new Date(before.at).getTime())}` : ""}
              </Td>
              <Td>{entry.verb.replaceAll("_", " ")}</Td>
              <Td>{entry.state && <StateBadge state={entry.state} />}</Td>
              <Td className="figures">{entry.attempt}</Td>
              <Td className="font-mono text-xs">{entry.worker}</Td>
              <Td className="min-w-48 text-muted">
                <span className="break-words whitespace-pre-wrap">{entry.note}</span>
              </Td>
            </tr>
          );
        })}
      </tbody>
    </Table>
  );
}
