/** Filters that this reader has given a name, kept in this browser. */

import { remember, remembered } from "@/lib/storage";
import { readJobsSearch, type JobsSearch } from "@/routes/jobs.search";

export interface View {
  readonly name: string;
  readonly search: JobsSearch;
}

const KEY = "views";

export function readViews(): View[] {
  try {
    const kept: unknown = JSON.parse(remembered(KEY) ?? "[]");
    return Array.isArray(kept) ? kept.flatMap(readView) : [];
  } catch {
    return [];
  }
}

function readView(value: unknown): View[] {
  if (typeof value !== "object" || value === null) return [];
  const { name, search } = value as { name?: unknown; search?: unknown };
  if (typeof name !== "string" || typeof search !== "object" || search === null) return [];
  return [{ name, search: readJobsSearch(search as Record<string, unknown>) }];
}

/** Kept under its name; one of the same name is replaced. */
export function keepView(view: View): View[] {
  const views = [...readViews().filter(({ name }) => name !== view.name), view];
  remember(KEY, JSON.stringify(views));
  return views;
}

export function dropView(name: string): View[] {
  const views = readViews().filter((view) => view.name !== name);
  remember(KEY, views.length > 0 ? JSON.stringify(views) : null);
  return views;
}
