/** Every query key: the resource first, then what narrows it, so that a prefix invalidates a whole resource. */

export const queryKeys = {
  session: ["session"] as const,
  overview: ["overview"] as const,
  metrics: (filters: object) => ["metrics", filters] as const,
  allJobs: ["jobs"] as const,
  jobs: (filters: object) => ["jobs", filters] as const,
  /** Pages of the job list as they are now, beside the list as it was scrolled through. */
  allVisiblePages: ["visible-pages"] as const,
  visiblePage: (filters: object, cursor: string | null) => ["visible-pages", filters, cursor] as const,
  jobSearch: (filters: object) => ["job-search", filters] as const,
  jobStats: (queue?: string) => ["job-stats", queue ?? ""] as const,
  job: (id: string) => ["job", id] as const,
  jobPart: (id: string, part: "history" | "logs" | "dependencies" | "dependents") => ["job", id, part] as const,
  jobById: (id?: string) => ["job-by-id", id ?? ""] as const,
  /** The pages of queues and tasks. */
  allLoadDetails: ["load-details"] as const,
  loadDetail: (kind: "queue" | "task", name: string, queue?: string) =>
    ["load-details", kind, name, queue ?? ""] as const,
  purge: (queue: string) => ["purge", queue] as const,
  workers: ["workers"] as const,
  /** The autoscaler: its state, its decisions, and the pool over time. */
  allScaling: ["scaling"] as const,
  scaling: ["scaling", "status"] as const,
  scalingDecisions: ["scaling", "decisions"] as const,
  poolHistory: (range: string) => ["scaling", "history", range] as const,
  tasks: ["tasks"] as const,
  locks: (filters: object) => ["locks", filters] as const,
  workflows: (filters: object) => ["workflows", filters] as const,
  workflow: (id: string) => ["workflow", id] as const,
  schedules: ["schedules"] as const,
  forecast: ["schedules", "forecast"] as const,
  /** Not below "schedules": the runs of a schedule that was removed are not requested again. */
  scheduleRuns: (id: string) => ["schedule-runs", id] as const,
  schedulePreview: (rule: object) => ["schedule-preview", rule] as const,
  allDeadLetters: ["dead-letters"] as const,
  deadLetterGroups: (queue?: string) => ["dead-letters", queue ?? ""] as const,
  deadLetters: (filters: { readonly queue?: string }) =>
    ["dead-letters", filters.queue ?? "", "jobs", filters] as const,
  operations: ["operations"] as const,
  allOperations: ["operations", "all"] as const,
  tokens: ["tokens"] as const,
  views: ["views"] as const,
  annotations: (filters: object) => ["annotations", filters] as const,
  operation: (id: string) => ["operation", id] as const,
  operationCount: (action: string, target: object) => ["operation-count", action, target] as const,
  audit: (filters: object) => ["audit", filters] as const,
  /** Names that the filter bar, the forms and the command palette suggest. */
  allSuggestions: ["suggestions"] as const,
  suggestions: (kind: "queues" | "filter" | "workflows-and-schedules") => ["suggestions", kind] as const,
};

/** The key of a mutation that removes what a query reads: while it runs, the query is not refreshed. */
export function removalKey(queryKey: readonly unknown[]): readonly unknown[] {
  return ["remove", ...queryKey.slice(0, 2)];
}
