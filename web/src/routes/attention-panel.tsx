/** The attention list of a page, with its actions. */

import { useState } from "react";

import {
  acknowledgeFinding,
  removeAcknowledgement,
  type Acknowledgement,
  type Finding,
} from "@/api/finding-acknowledgement";
import { queryKeys } from "@/api/query-keys";
import { useHasRole } from "@/api/session";
import { AcknowledgeDialog } from "@/components/attention/acknowledge-dialog";
import { FindingList } from "@/components/attention/finding-list";
import { Panel } from "@/components/panel";
import { useMutationWithToast } from "@/lib/use-mutation-with-toast";

const INVALIDATED = [queryKeys.overview, queryKeys.allLoadDetails];

/** Shows nothing without findings. */
export function AttentionPanel({ findings }: { findings: readonly Finding[] }) {
  const mayAcknowledge = useHasRole("operator");
  const [asked, setAsked] = useState<Finding | null>(null);
  const acknowledge = useMutationWithToast({
    run: ({ key, how }: { key: string; how: Acknowledgement }) => acknowledgeFinding(key, how),
    successMessage: () => "Acknowledged",
    invalidates: INVALIDATED,
    onDone: () => setAsked(null),
    hidesErrors: true,
  });
  const remove = useMutationWithToast({
    run: ({ key }: Finding) => removeAcknowledgement(key),
    successMessage: () => "Acknowledgement removed",
    invalidates: INVALIDATED,
  });
  if (findings.length === 0) return null;
  return (
    <Panel title="Needs attention" isFlush>
      <FindingList
        label="Needs attention"
        findings={findings}
        onAcknowledge={mayAcknowledge ? setAsked : undefined}
        onRemove={mayAcknowledge ? (finding) => remove.mutate(finding) : undefined}
      />
      {asked !== null && (
        <AcknowledgeDialog
          finding={asked}
          isBusy={acknowledge.isPending}
          error={acknowledge.error}
          onClose={() => {
            acknowledge.reset();
            setAsked(null);
          }}
          onAcknowledge={(how) => acknowledge.mutate({ key: asked.key, how })}
        />
      )}
    </Panel>
  );
}
