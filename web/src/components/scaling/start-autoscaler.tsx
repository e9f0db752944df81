import { Scaling } from "lucide-react";

import { CopyButton } from "@/components/copy-button";
import { EmptyState } from "@/components/loading-empty-error-states";

const COMMAND = "rota autoscale tasks:rota";

/** The command that starts an autoscaler, to be copied. */
export function StartAutoscalerCommand() {
  return (
    <p className="mt-2 inline-flex max-w-full items-center gap-2 rounded-md border bg-surface px-3 py-1.5">
      <code className="min-w-0 break-words">{COMMAND}</code>
      <CopyButton text={COMMAND} />
    </p>
  );
}

/** Shown until an autoscaler has run: what it is, and how to start one. */
export function AutoscalerNeverRan() {
  return (
    <EmptyState icon={Scaling} title="No autoscaler has run yet">
      <p>
        The autoscaler starts workers while jobs wait too long, and drains those that are not needed. It runs them as
        local processes, on EC2, in an Auto Scaling group, on Kubernetes, or with a script of yours. This page shows
        what it decides and why.
      </p>
      <StartAutoscalerCommand />
    </EmptyState>
  );
}
