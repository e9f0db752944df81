import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

import type { WorkflowStep } from "@/api/workflows";

interface StepLinkProps {
  workflow: string;
  step: Pick<WorkflowStep, "name" | "jobId" | "queue" | "index" | "type">;
  children?: ReactNode;
  className?: string;
}

/** To the job that a step is; to all of them, where it runs over a list. */
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
