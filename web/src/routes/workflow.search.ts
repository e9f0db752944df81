/** What the URL of a workflow's page can say: which view is shown, and how much of the graph. */

export type WorkflowView = "graph" | "timeline" | "steps";

export interface WorkflowSearch {
  /** Else the graph, or the steps where a graph would be too small to read. */
  readonly view?: WorkflowView;
  /** Steps that are done are left out of the graph. */
  readonly hideDone?: true;
  /** The graph moves with the steps that run. */
  readonly follow?: true;
  /** Groups of like steps that are open: the place of the first step of each. */
  readonly open?: "all" | readonly number[];
  /** The timeline shows the critical path alone. */
  readonly critical?: true;
}

/** More open groups than this are too many for a URL; whoever wants to see more opens all of them. */
const MOST_OPEN = 50;

export function readWorkflowSearch({ view, ...search }: Record<string, unknown>): WorkflowSearch {
  const open = openOf(search.open);
  return {
    ...(view === "graph" || view === "timeline" || view === "steps" ? { view } : {}),
    ...(search.hideDone === true ? { hideDone: true } : {}),
    ...(search.follow === true ? { follow: true } : {}),
    ...(open === undefined ? {} : { open }),
    ...(search.critical === true ? { critical: true } : {}),
  };
}

function openOf(value: unknown): WorkflowSearch["open"] {
  if (value === "all") return "all";
  if (!Array.isArray(value)) return undefined;
  const places = value.filter((one): one is number => Number.isSafeInteger(one) && one >= 0);
  return places.length > 0 ? [...new Set(places)].slice(-MOST_OPEN) : undefined;
}
