/** The query cache. The event stream invalidates it: see `live/`. */

import { QueryCache, QueryClient } from "@tanstack/react-query";

import { ApiError } from "@/api/http-client";
import { queryKeys } from "@/api/query-keys";

export function createQueryClient(): QueryClient {
  const client: QueryClient = new QueryClient({
    queryCache: new QueryCache({
      onError: (error, query) => {
        // The session has ended: refetching it fails, which shows the login page.
        if (error instanceof ApiError && error.status === 401 && query.queryKey !== queryKeys.session) {
          void client.invalidateQueries({ queryKey: queryKeys.session });
        }
      },
    }),
    defaultOptions: {
      queries: {
        // A page that is opened again shows cached data and refetches it.
        staleTime: 1000,
        retry: (failures, error) =>
          !(error instanceof ApiError && error.status >= 400 && error.status < 500) && failures < 2,
        refetchOnWindowFocus: true,
      },
    },
  });
  return client;
}
