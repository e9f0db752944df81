import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { Workflow as WorkflowIcon } from "lucide-react";

import { ApiError } from "@/api/client";
import { workflowsQuery, type WorkflowInfo } from "@/api/workflows";
import { TextField } from "@/components/field";
import { Empty, FilteredEmpty, Loaded } from "@/components/looks";
import { Page } from "@/components/page";
import { Panel } from "@/components/panel";
import { WorkflowList } from "@/components/workflow/list";
import { classes } from "@/lib/classes";
import { plural } from "@/lib/numbers";
import { WORKFLOW_STATES, WORKFLOW_TONES, type WorkflowState } from "@/lib/states";
import { statesOf, type WorkflowsSearch } from "@/routes/workflows.search";

const FIRST = `async with rota.workflow("order") as flow:
    paid = flow.step(charge.call("o-1", 20))
    paid.undo(refund.call(paid.result))
    packed = flow.step(pack.call("o-1"))
    flow.step(ship.call("o-1", packed.result, paid.result))`;

export function WorkflowsRoute() {
  const search = useSearch({ from: "/inside/workflows" });
  const navigate = useNavigate();
  const states = statesOf(search);
  const query = useQuery(workflowsQuery(states));
  const isRefused = query.error instanceof ApiError && query.error.status === 403;
  const show = (changed: WorkflowsSearch) => void navigate({ to: "/workflows", search: changed, replace: true });
  const toggle = (state: WorkflowState) => {
    const chosen = WORKFLOW_STATES.filter((one) => states.includes(one) !== (one === state));
    show({ ...search, state: chosen.length > 0 ? chosen.join(",") : undefined });
  };
  return (
    <Page title="Workflows" lead="All that have not ended, and those of the last day, the newest first.">
      <div className={classes("flex flex-wrap items-center gap-2", isRefused && "hidden")}>
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
            <StateChip key={state} state={state} isChosen={states.includes(state)} onToggle={() => toggle(state)} />
          ))}
        </div>
      </div>
      <Panel isFlush>
        <Loaded query={query} lines={8}>
          {(workflows) => {
            const shown = named(workflows, search.name ?? "");
            if (shown.length > 0) return <WorkflowList workflows={shown} />;
            const isFiltered = states.length > 0 || search.name !== undefined;
            return isFiltered ? <FilteredEmpty what="workflows" onClear={() => show({})} /> : <First />;
          }}
        </Loaded>
      </Panel>
      {query.data !== undefined && query.data.length > 0 && (
        <p className="figures text-xs text-muted">{plural(named(query.data, search.name ?? "").length, "workflow")}</p>
      )}
    </Page>
  );
}

function named(workflows: readonly WorkflowInfo[], text: string): readonly WorkflowInfo[] {
  const wanted = text.trim().toLowerCase();
  return workflows.filter(({ name, id }) => name.toLowerCase().includes(wanted) || id.toLowerCase().includes(wanted));
}

function StateChip({ state, isChosen, onToggle }: { state: WorkflowState; isChosen: boolean; onToggle: () => void }) {
  const tone = WORKFLOW_TONES[state];
  return (
    <button
      type="button"
      aria-pressed={isChosen}
      title={tone.meaning}
      onClick={onToggle}
      className={classes(
        "inline-flex h-7 items-center gap-1.5 rounded-md border px-2 text-[13px]",
        isChosen ? classes("border-transparent font-medium", tone.badge) : "text-muted hover:bg-sunken hover:text-text",
      )}
    >
      <span aria-hidden className={classes("size-1.5 rounded-full forced-color-adjust-none", tone.mark)} />
      {tone.label}
    </button>
  );
}

function First() {
  return (
    <Empty icon={WorkflowIcon} title="No workflow yet">
      <p>
        A workflow is a graph of jobs: each step starts when those that it needs have succeeded, and what was done can
        be undone.
      </p>
      <pre className="mt-4 overflow-x-auto rounded-md bg-sunken p-3 text-left font-mono text-xs leading-5 text-text">
        {FIRST}
      </pre>
    </Empty>
  );
}
