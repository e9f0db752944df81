import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

import type { WorkflowStep } from "@/api/workflows";

interface StepLinkProps {
  workflow: string;
  step: Pick<WorkflowStep, "name" | "jobId" | "queue" | "index" | "type">;
  children?: ReactNode;
  className?: string;
}

/** Links a step to its job; a step over a list links to all its jobs. */
export function StepLink({ workflow, step, children, className }: StepLinkProps) {
  const look = className ?? "rounded-sm underline-offset-2 hover:underline";
  if (step.jobId !== null) {
    return (
      <Link to="/jobs/$id" params={{ id: step.jobId }} search={{}} className={look}>
        {children ?? step.name}
      </Link>
    );
  }
  const items = { queue: step.queue, task: step.type, text: `${workflow}.${step.index}.` };
  return (
    <Link to="/jobs" search={items} className={look}>
      {children ?? step.name}
    </Link>
  );
}
