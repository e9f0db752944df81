/** Saved views of the job list, kept in local storage. */

import { writeStored, readStored } from "@/lib/local-storage";
import { readJobsSearch, type JobsSearch } from "@/routes/jobs.search-params";

export interface SavedView {
  readonly name: string;
  readonly search: JobsSearch;
}

const KEY = "views";

export function loadViews(): SavedView[] {
  try {
    const kept: unknown = JSON.parse(readStored(KEY) ?? "[]");
    return Array.isArray(kept) ? kept.flatMap(parseView) : [];
  } catch {
    return [];
  }
}

function parseView(value: unknown): SavedView[] {
  if (typeof value !== "object" || value === null) return [];
  const { name, search } = value as { name?: unknown; search?: unknown };
  if (typeof name !== "string" || typeof search !== "object" || search === null) return [];
  return [{ name, search: readJobsSearch(search as Record<string, unknown>) }];
}

/** Saves a view; replaces one of the same name. */
export function saveView(view: SavedView): SavedView[] {
  const views = [...loadViews().filter(({ name }) => name !== view.name), view];
  writeStored(KEY, JSON.stringify(views));
  return views;
}

export function deleteView(name: string): SavedView[] {
  const views = loadViews().filter((view) => view.name !== name);
  writeStored(KEY, views.length > 0 ? JSON.stringify(views) : null);
  return views;
}
