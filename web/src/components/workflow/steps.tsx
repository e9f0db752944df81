/** The steps as a table: all that the graph shows, for reading line by line. */

import { memo } from "react";

import type { Workflow, WorkflowStep } from "@/api/workflows";
import { Badge, StateBadge } from "@/components/badge";
import { Button } from "@/components/button";
import { JobLink } from "@/components/links";
import { Moment, Span } from "@/components/moment";
import { Table, Td, Th } from "@/components/table";
import { StepLink } from "@/components/workflow/step-link";
import { JOB_TONES } from "@/lib/states";
import { itemsOf, stateOf, undoWords } from "@/lib/steps";

interface StepsProps {
  workflow: Workflow;
  /** Tries a job again: a failed step, or a failed compensation. Undefined where that is not allowed. */
  onRetry?: (jobId: string) => void;
  isBusy: boolean;
}

export function Steps({ workflow, onRetry, isBusy }: StepsProps) {
  return (
    <Table label="Steps">
      <thead>
        <tr>
          <Th>Step</Th>
          <Th>State</Th>
          <Th>Attempts</Th>
          <Th>Started</Th>
          <Th>Ran</Th>
          <Th>Undo</Th>
          <Th>After</Th>
          <Th>
            <span className="sr-only">Actions</span>
          </Th>
        </tr>
      </thead>
      <tbody>
        {workflow.steps.map((step) => (
          <Row
            key={step.index}
            workflow={workflow.id}
            step={step}
            after={step.after.map((place) => workflow.steps[place]?.name ?? "").join(", ")}
            onRetry={onRetry}
            isBusy={isBusy}
          />
        ))}
      </tbody>
    </Table>
  );
}

interface RowProps {
  workflow: string;
  step: WorkflowStep;
  after: string;
  onRetry?: (jobId: string) => void;
  isBusy: boolean;
}

const Row = memo(function Row({ workflow, step, after, onRetry, isBusy }: RowProps) {
  const items = itemsOf(step);
  const failed = step.outcome === "failed" ? step.jobId : null;
  return (
    <tr className="hover:bg-sunken/60">
      <Td className="min-w-40">
        <span className="font-medium">
          <StepLink workflow={workflow} step={step} />
        </span>
        <span className="block font-mono text-xs text-muted">{step.type}</span>
      </Td>
      <Td className="whitespace-nowrap">
        <StateBadge state={stateOf(step)} />
        {items !== null && <span className="figures ml-2 text-xs text-muted">{items}</span>}
      </Td>
      <Td className="figures">{step.attempts > 0 && step.attempts}</Td>
      <Td className="whitespace-nowrap">{step.started_at !== null && <Moment at={step.started_at} />}</Td>
      <Td className="whitespace-nowrap">
        {step.started_at !== null && (step.ended_at !== null || step.status === "PROCESSING") && (
          <Span from={step.started_at} until={step.ended_at} />
        )}
      </Td>
      <Td className="whitespace-nowrap">{step.undo !== null && <Undo undo={step.undo} />}</Td>
      <Td className="max-w-64 text-xs text-muted">
        <span className="line-clamp-2">{after}</span>
      </Td>
      <Td className="text-right whitespace-nowrap">
        {onRetry && failed !== null && (
          <Button isBusy={isBusy} onClick={() => onRetry(failed)} aria-label={`Retry ${step.name}`}>
            Retry
          </Button>
        )}
        {onRetry && step.undo?.state === "failed" && (
          <Button
            isBusy={isBusy}
            onClick={() => step.undo && onRetry(step.undo.jobId)}
            aria-label={`Retry the undo of ${step.name}`}
          >
            Retry undo
          </Button>
        )}
      </Td>
    </tr>
  );
});

function Undo({ undo }: { undo: NonNullable<WorkflowStep["undo"]> }) {
  const { words, state } = undoWords(undo);
  if (state === null) return <span className="text-xs text-muted">{words}</span>;
  return (
    <JobLink id={undo.jobId} className="">
      <Badge className={JOB_TONES[state].badge}>{words}</Badge>
    </JobLink>
  );
}
