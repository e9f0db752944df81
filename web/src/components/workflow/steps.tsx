/** The steps line by line, with all that the graph shows: a table, or two lines for each where there is no room for one. */

import { memo } from "react";

import type { Workflow, WorkflowStep } from "@/api/workflows";
import { Badge, StateBadge } from "@/components/badge";
import { Button } from "@/components/button";
import { JobLink } from "@/components/links";
import { Moment, Span } from "@/components/moment";
import { Table, Td, Th } from "@/components/table";
import { StepLink } from "@/components/workflow/step-link";
import { useMedia } from "@/lib/media";
import { JOB_TONES } from "@/lib/states";
import { itemsOf, stateOf, undoWords } from "@/lib/steps";

interface StepsProps {
  workflow: Workflow;
  /** Tries a job again: a failed step, or a failed compensation. Undefined where that is not allowed. */
  onRetry?: (jobId: string) => void;
  isBusy: boolean;
}

export function Steps({ workflow, onRetry, isBusy }: StepsProps) {
  const isWide = useMedia("(min-width: 768px)");
  if (!isWide) {
    return (
      <ol aria-label="Steps">
        {workflow.steps.map((step) => (
          <PhoneRow key={step.index} workflow={workflow.id} step={step} onRetry={onRetry} isBusy={isBusy} />
        ))}
      </ol>
    );
  }
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
  onRetry?: (jobId: string) => void;
  isBusy: boolean;
}

const Row = memo(function Row({ workflow, step, after, onRetry, isBusy }: RowProps & { after: string }) {
  const items = itemsOf(step);
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
        <Ran step={step} />
      </Td>
      <Td className="whitespace-nowrap">{step.undo !== null && <Undo undo={step.undo} />}</Td>
      <Td className="max-w-64 text-xs text-muted">
        <span className="line-clamp-2">{after}</span>
      </Td>
      <Td className="text-right whitespace-nowrap">
        <Retries step={step} onRetry={onRetry} isBusy={isBusy} />
      </Td>
    </tr>
  );
});

/** Two lines: how it stands, which one and for how long it ran; then why it failed or else what it does, and what can be done about it. */
const PhoneRow = memo(function PhoneRow({ workflow, step, onRetry, isBusy }: RowProps) {
  const items = itemsOf(step);
  return (
    <li className="flex flex-col gap-0.5 border-b border-line/60 px-4 py-2 text-[13px] [contain-intrinsic-size:auto_60px] [content-visibility:auto] last:border-b-0">
      <div className="flex min-w-0 items-center gap-2">
        <StateBadge state={stateOf(step)} />
        <span className="min-w-0 flex-1 font-medium">
          <StepLink
            workflow={workflow}
            step={step}
            className="block min-h-6 truncate leading-6 underline-offset-2 hover:underline"
          />
        </span>
        <span className="shrink-0 text-xs text-muted">
          <Ran step={step} />
        </span>
      </div>
      <div className="flex min-h-6 min-w-0 items-center gap-2 text-xs text-muted">
        <span className="figures min-w-0 flex-1 truncate">
          {step.outcome === "failed" && step.error !== null ? (
            <>
              <span className="text-failed">{step.error.type || step.error.kind}</span> {step.error.message}
            </>
          ) : (
            <>
              <span className="font-mono">{step.type}</span>
              {items !== null && `, ${items}`}
              {step.attempts > 1 && `, ${step.attempts} attempts`}
            </>
          )}
        </span>
        {step.undo !== null && <Undo undo={step.undo} />}
        <Retries step={step} onRetry={onRetry} isBusy={isBusy} />
      </div>
    </li>
  );
});

function Ran({ step }: { step: WorkflowStep }) {
  if (step.started_at === null || (step.ended_at === null && step.status !== "PROCESSING")) return null;
  return <Span from={step.started_at} until={step.ended_at} />;
}

function Retries({ step, onRetry, isBusy }: Omit<RowProps, "workflow">) {
  if (!onRetry) return null;
  const failed = step.outcome === "failed" ? step.jobId : null;
  const undo = step.undo?.state === "failed" ? step.undo.jobId : null;
  return (
    <>
      {failed !== null && (
        <Button isBusy={isBusy} onClick={() => onRetry(failed)} aria-label={`Retry ${step.name}`}>
          Retry
        </Button>
      )}
      {undo !== null && (
        <Button isBusy={isBusy} onClick={() => onRetry(undo)} aria-label={`Retry the undo of ${step.name}`}>
          Retry undo
        </Button>
      )}
    </>
  );
}

function Undo({ undo }: { undo: NonNullable<WorkflowStep["undo"]> }) {
  const { words, state } = undoWords(undo);
  if (state === null) return <span className="text-xs text-muted">{words}</span>;
  return (
    <JobLink id={undo.jobId} className="">
      <Badge className={JOB_TONES[state].badge}>{words}</Badge>
    </JobLink>
  );
}
