/** Query keys: the resource first, then what narrows it, so that a whole resource can be read again. */

export const keys = {
  session: ["session"] as const,
  overview: ["overview"] as const,
  jobs: (filters: object) => ["jobs", filters] as const,
  job: (id: string) => ["job", id] as const,
  jobPart: (id: string, part: "history" | "logs" | "dependencies" | "dependents") => ["job", id, part] as const,
  stats: (queue?: string) => ["stats", queue ?? ""] as const,
  queues: ["queues"] as const,
  workers: ["workers"] as const,
  tasks: ["tasks"] as const,
  locks: (filters: object) => ["locks", filters] as const,
  workflows: (filters: object) => ["workflows", filters] as const,
  workflow: (id: string) => ["workflow", id] as const,
  schedules: ["schedules"] as const,
  deadGroups: (queue?: string) => ["dead", queue ?? ""] as const,
  operations: ["operations"] as const,
  operation: (id: string) => ["operation", id] as const,
  metrics: (filters: object) => ["metrics", filters] as const,
  scaling: ["scaling"] as const,
  audit: ["audit"] as const,
};

/** The key of a mutation that removes what a query reads: while it is under way, the query is not read again. */
export function removalOf(queryKey: readonly unknown[]): readonly unknown[] {
  return ["remove", ...queryKey.slice(0, 2)];
}
