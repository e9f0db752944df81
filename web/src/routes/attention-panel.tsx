import type { Finding } from "@/api/attention";
import { FindingList } from "@/components/attention/finding-list";
import { Panel } from "@/components/panel";

/** The attention list of a page. Shows nothing without findings. */
export function AttentionPanel({ findings }: { findings: readonly Finding[] }) {
  if (findings.length === 0) return null;
  return (
    <Panel title="Needs attention" isFlush>
      <FindingList label="Needs attention" findings={findings} />
    </Panel>
  );
}
