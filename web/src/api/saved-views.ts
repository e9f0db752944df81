/** Saved views of the job list, shared by all users. */

import { queryOptions } from "@tanstack/react-query";

import { api, unwrap, type Schemas } from "@/api/http-client";
import { queryKeys } from "@/api/query-keys";
import { readJobsSearch, type JobsSearch } from "@/routes/jobs.search-params";

export interface SavedView {
  readonly name: string;
  readonly search: JobsSearch;
  readonly by: string | null;
}

const PAGE = "/jobs";

function toView({ name, search, by }: Schemas["SavedView"]): SavedView {
  return { name, search: readJobsSearch(search), by };
}

export const viewsQuery = queryOptions({
  queryKey: queryKeys.views,
  queryFn: async ({ signal }): Promise<readonly SavedView[]> =>
    (await unwrap(api.GET("/api/views", { signal }))).views.filter(({ page }) => page === PAGE).map(toView),
});

/** Saves a view; replaces one of the same name. */
export function saveView({ name, search }: { name: string; search: JobsSearch }) {
  const body = { page: PAGE, search: { ...search } };
  return unwrap(api.PUT("/api/views/{name}", { params: { path: { name } }, body }));
}

export function deleteView(name: string) {
  return unwrap(api.DELETE("/api/views/{name}", { params: { path: { name } } }));
}
