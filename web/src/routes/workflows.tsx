/** The workflows page: list with filters. */

import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { Workflow as WorkflowIcon } from "lucide-react";

import { ApiError } from "@/api/http-client";
import { workflowsQuery, type WorkflowInfo } from "@/api/workflows";
import { TextField } from "@/components/form-fields";
import { EmptyState, NoMatches, QueryContent } from "@/components/loading-empty-error-states";
import { PageLayout } from "@/components/page-layout";
import { Panel } from "@/components/panel";
import { WorkflowList } from "@/components/workflow/workflow-list";
import { classNames } from "@/lib/class-names";
import { formatPlural } from "@/lib/format-number";
import { WORKFLOW_STATES, WORKFLOW_STATE_STYLES, type WorkflowState } from "@/lib/job-and-workflow-states";
import { statesOf, type WorkflowsSearch } from "@/routes/workflows.search-params";

const EXAMPLE = `async with rota.workflow("order") as workflow:
    paid = workflow.step(charge.call("o-1", 20))
    paid.undo(refund.call(paid.result))
    packed = workflow.step(pack.call("o-1"))
    workflow.step(ship.call("o-1", packed.result, paid.result))`;

export function WorkflowsRoute() {
  const search = useSearch({ from: "/authenticated/workflows" });
  const navigate = useNavigate();
  const states = statesOf(search);
  const query = useQuery(workflowsQuery(states));
  const isRefused = query.error instanceof ApiError && query.error.status === 403;
  const show = (changed: WorkflowsSearch) => void navigate({ to: "/workflows", search: changed, replace: true });
  const toggle = (state: WorkflowState) => {
    const selected = WORKFLOW_STATES.filter((one) => states.includes(one) !== (one === state));
    show({ ...search, state: selected.length > 0 ? selected.join(",") : undefined });
  };
  return (
    <PageLayout title="Workflows" lead="Unfinished workflows, and those finished in the last 24 hours, newest first">
      <div className={classNames("flex flex-wrap items-center gap-2", isRefused && "hidden")}>
        <TextField
          label="Name or id"
          isLabelHidden
          placeholder="Name or id"
          type="search"
          value={search.name ?? ""}
          onChange={(name) => show({ ...search, name: name === "" ? undefined : name })}
          className="w-56"
        />
        <div role="group" aria-label="States" className="flex flex-wrap gap-1">
          {WORKFLOW_STATES.map((state) => (
            <StateChip key={state} state={state} isSelected={states.includes(state)} onToggle={() => toggle(state)} />
          ))}
        </div>
      </div>
      <Panel isFlush>
        <QueryContent query={query} lines={8}>
          {(workflows) => {
            const shown = filterByName(workflows, search.name ?? "");
            if (shown.length > 0) return <WorkflowList workflows={shown} />;
            const isFiltered = states.length > 0 || search.name !== undefined;
            return isFiltered ? <NoMatches what="workflows" onClear={() => show({})} /> : <FirstWorkflow />;
          }}
        </QueryContent>
      </Panel>
      {query.data !== undefined && query.data.length > 0 && (
        <p className="tabular-nums text-xs text-muted">
          {formatPlural(filterByName(query.data, search.name ?? "").length, "workflow")}
        </p>
      )}
    </PageLayout>
  );
}

function filterByName(workflows: readonly WorkflowInfo[], text: string): readonly WorkflowInfo[] {
  const wanted = text.trim().toLowerCase();
  return workflows.filter(({ name, id }) => name.toLowerCase().includes(wanted) || id.toLowerCase().includes(wanted));
}

function StateChip({
  state,
  isSelected,
  onToggle,
}: {
  state: WorkflowState;
  isSelected: boolean;
  onToggle: () => void;
}) {
  const tone = WORKFLOW_STATE_STYLES[state];
  return (
    <button
      type="button"
      aria-pressed={isSelected}
      title={tone.meaning}
      onClick={onToggle}
      className={classNames(
        "inline-flex h-7 items-center gap-1.5 rounded-md border px-2 text-[13px]",
        isSelected
          ? classNames("border-transparent font-medium", tone.badge)
          : "text-muted hover:bg-sunken hover:text-text",
      )}
    >
      <span aria-hidden className={classNames("size-1.5 rounded-full forced-color-adjust-none", tone.mark)} />
      {tone.label}
    </button>
  );
}

function FirstWorkflow() {
  return (
    <EmptyState icon={WorkflowIcon} title="No workflows yet">
      <p>
        A workflow is a graph of jobs: each step starts when the steps it depends on have succeeded, and completed steps
        can be undone.
      </p>
      <pre className="mt-4 overflow-x-auto rounded-md bg-sunken p-3 text-left font-mono text-xs leading-5 text-text">
        {EXAMPLE}
      </pre>
    </EmptyState>
  );
}
