/** The steps of a workflow as a table; on narrow screens as a list with two lines per step. */

import { memo } from "react";

import type { Workflow, WorkflowStep } from "@/api/workflows";
import { Badge, JobStateBadge } from "@/components/badges";
import { Button } from "@/components/buttons";
import { JobLink } from "@/components/job-links";
import { RelativeTime, Duration } from "@/components/relative-time-and-duration";
import { Table, Td, Th } from "@/components/table";
import { StepLink } from "@/components/workflow/step-link";
import { JOB_STATE_STYLES } from "@/lib/job-and-workflow-states";
import { useMediaQuery } from "@/lib/use-media-query";
import { itemProgress, stepState, undoStatus } from "@/lib/workflow-step-state";

interface StepListProps {
  workflow: Workflow;
  /** Redrives a failed step or compensation. Undefined if that is not allowed. */
  onRetry?: (jobId: string) => void;
  isBusy: boolean;
}

export function StepList({ workflow, onRetry, isBusy }: StepListProps) {
  const isWide = useMediaQuery("(min-width: 768px)");
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
  const items = itemProgress(step);
  return (
    <tr className="hover:bg-sunken/60">
      <Td className="min-w-40">
        <span className="font-medium">
          <StepLink workflow={workflow} step={step} />
        </span>
        <span className="block font-mono text-xs text-muted">{step.type}</span>
      </Td>
      <Td className="whitespace-nowrap">
        <JobStateBadge state={stepState(step)} />
        {items !== null && <span className="tabular-nums ml-2 text-xs text-muted">{items}</span>}
      </Td>
      <Td className="tabular-nums">{step.attempts > 0 && step.attempts}</Td>
      <Td className="whitespace-nowrap">{step.started_at !== null && <RelativeTime at={step.started_at} />}</Td>
      <Td className="whitespace-nowrap">
        <RunTime step={step} />
      </Td>
      <Td className="whitespace-nowrap">{step.undo !== null && <UndoBadge undo={step.undo} />}</Td>
      <Td className="max-w-64 text-xs text-muted">
        <span className="line-clamp-2">{after}</span>
      </Td>
      <Td className="text-right whitespace-nowrap">
        <RetryButtons step={step} onRetry={onRetry} isBusy={isBusy} />
      </Td>
    </tr>
  );
});

/** Two lines: state, name and running time; error or task, and the actions. */
const PhoneRow = memo(function PhoneRow({ workflow, step, onRetry, isBusy }: RowProps) {
  const items = itemProgress(step);
  return (
    <li className="flex flex-col gap-0.5 border-b border-line/60 px-4 py-2 text-[13px] [contain-intrinsic-size:auto_60px] [content-visibility:auto] last:border-b-0">
      <div className="flex min-w-0 items-center gap-2">
        <JobStateBadge state={stepState(step)} />
        <span className="min-w-0 flex-1 font-medium">
          <StepLink
            workflow={workflow}
            step={step}
            className="block min-h-6 truncate leading-6 underline-offset-2 hover:underline"
          />
        </span>
        <span className="shrink-0 text-xs text-muted">
          <RunTime step={step} />
        </span>
      </div>
      <div className="flex min-h-6 min-w-0 items-center gap-2 text-xs text-muted">
        <span className="tabular-nums min-w-0 flex-1 truncate">
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
        {step.undo !== null && <UndoBadge undo={step.undo} />}
        <RetryButtons step={step} onRetry={onRetry} isBusy={isBusy} />
      </div>
    </li>
  );
});

function RunTime({ step }: { step: WorkflowStep }) {
  if (step.started_at === null || (step.ended_at === null && step.status !== "PROCESSING")) return null;
  return <Duration from={step.started_at} until={step.ended_at} />;
}

function RetryButtons({ step, onRetry, isBusy }: Omit<RowProps, "workflow">) {
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
        <Button isBusy={isBusy} onClick={() => onRetry(undo)} aria-label={`Retry undo of ${step.name}`}>
          Retry undo
        </Button>
      )}
    </>
  );
}

function UndoBadge({ undo }: { undo: NonNullable<WorkflowStep["undo"]> }) {
  const { label, state } = undoStatus(undo);
  if (state === null) return <span className="text-xs text-muted">{label}</span>;
  return (
    <JobLink id={undo.jobId} className="">
      <Badge className={JOB_STATE_STYLES[state].badge}>{label}</Badge>
    </JobLink>
  );
}
