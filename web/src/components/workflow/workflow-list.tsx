/** The list of workflows: state, progress, and why a workflow stopped. */

import { Link } from "@tanstack/react-router";

import type { WorkflowInfo } from "@/api/workflows";
import { WorkflowStateBadge } from "@/components/badges";
import { ProgressBar } from "@/components/progress-bar";
import { RelativeTime, Duration } from "@/components/relative-time-and-duration";
import { Table, Td, Th } from "@/components/table";
import { formatCount } from "@/lib/format-number";

export function WorkflowList({ workflows }: { workflows: readonly WorkflowInfo[] }) {
  return (
    <Table label="Workflows">
      <thead>
        <tr>
          <Th>State</Th>
          <Th>Workflow</Th>
          <Th>Completed steps</Th>
          <Th className="max-md:hidden">Started</Th>
          <Th className="max-md:hidden">Duration</Th>
          <Th className="max-lg:hidden">Cause</Th>
        </tr>
      </thead>
      <tbody>
        {workflows.map((workflow) => (
          <Row key={workflow.id} workflow={workflow} />
        ))}
      </tbody>
    </Table>
  );
}

function Row({ workflow }: { workflow: WorkflowInfo }) {
  const { id, name, state, done, total, created_at, ended_at, cause } = workflow;
  return (
    <tr className="hover:bg-sunken/60">
      <Td className="max-sm:px-2">
        <WorkflowStateBadge state={state} />
      </Td>
      <Td className="min-w-32 max-sm:px-2">
        <Link
          to="/workflows/$id"
          params={{ id }}
          search={{}}
          className="block rounded-sm font-medium break-all underline-offset-2 hover:underline"
        >
          {name}
          <span className="block font-mono text-xs font-normal text-muted">{id}</span>
        </Link>
        <span className="block text-xs text-muted md:hidden">
          <RelativeTime at={created_at} />, <Duration from={created_at} until={ended_at} />
        </span>
        {cause !== null && <span className="line-clamp-2 text-xs break-words text-failed lg:hidden">{cause}</span>}
      </Td>
      <Td className="w-44 max-sm:w-24 max-sm:px-2">
        <span className="tabular-nums text-xs text-muted">
          {formatCount(done)} of {formatCount(total)}
        </span>
        <ProgressBar value={total === 0 ? 0 : (done / total) * 100} label={`Completed steps of ${name}`} />
      </Td>
      <Td className="whitespace-nowrap max-md:hidden">
        <RelativeTime at={created_at} />
      </Td>
      <Td className="whitespace-nowrap max-md:hidden">
        <Duration from={created_at} until={ended_at} />
      </Td>
      <Td className="max-lg:hidden">
        <span className="line-clamp-2 break-words text-muted" title={cause ?? undefined}>
          {cause}
        </span>
      </Td>
    </tr>
  );
}
