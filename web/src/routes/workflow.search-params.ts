/** Search params of the workflow page: the view, and the options of the graph. */

export type WorkflowView = "graph" | "timeline" | "steps";

export interface WorkflowSearch {
  /** Default: the graph, or the list of steps on small screens. */
  readonly view?: WorkflowView;
  /** Hides completed steps in the graph. */
  readonly hideDone?: true;
  /** The viewport follows the running steps. */
  readonly follow?: true;
  /** The expanded groups: the index of the first step of each. */
  readonly open?: "all" | readonly number[];
  /** The timeline shows only the critical path. */
  readonly critical?: true;
}

/** Limit of open groups in a URL; beyond it, all are opened. */
const MAX_OPEN = 50;

export function readWorkflowSearch({ view, ...search }: Record<string, unknown>): WorkflowSearch {
  const open = openParam(search.open);
  return {
    ...(view === "graph" || view === "timeline" || view === "steps" ? { view } : {}),
    ...(search.hideDone === true ? { hideDone: true } : {}),
    ...(search.follow === true ? { follow: true } : {}),
    ...(open === undefined ? {} : { open }),
    ...(search.critical === true ? { critical: true } : {}),
  };
}

function openParam(value: unknown): WorkflowSearch["open"] {
  if (value === "all") return "all";
  if (!Array.isArray(value)) return undefined;
  const places = value.filter((one): one is number => Number.isSafeInteger(one) && one >= 0);
  return places.length > 0 ? [...new Set(places)].slice(-MAX_OPEN) : undefined;
}
