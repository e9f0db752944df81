/** The jobs of a bulk operation, as a filter of the jobs page and in words. */

import type { Operation } from "@/api/bulk-operations";
import { formatPlural } from "@/lib/format-number";
import { formatToken, toTokens, type Filter } from "@/lib/job-filter";
import { JOB_STATES } from "@/lib/job-and-workflow-states";

interface OperationTargetWords {
  readonly words: string;
  /** Null for jobs that were selected one by one. */
  readonly search: Filter | null;
}

/** The conditions of the operation without the time at which it began. */
export function operationTarget({ where, chosen }: Pick<Operation, "where" | "chosen">): OperationTargetWords {
  if (chosen !== null) return { words: formatPlural(chosen, "selected job"), search: null };
  const text = (name: string) => {
    const value = where[name];
    return typeof value === "string" && value !== "" ? value : undefined;
  };
  const state = text("state")?.toUpperCase();
  const search: Filter = {
    state: JOB_STATES.find((one) => one === state),
    queue: text("queue"),
    task: text("task") ?? text("type"),
    tag: text("tag"),
    worker: text("worker"),
    error: text("error"),
    group: text("group"),
    text: text("text"),
  };
  const words = toTokens(search).map(formatToken).join(" ");
  return { words: words === "" ? "all jobs" : words, search };
}
