/** The cache of what the server said. The stream of events says when it is old: see `live/`. */

import { QueryCache, QueryClient } from "@tanstack/react-query";

import { ApiError } from "@/api/client";
import { keys } from "@/api/keys";

export function makeQueryClient(): QueryClient {
  const client: QueryClient = new QueryClient({
    queryCache: new QueryCache({
      onError: (error, query) => {
        // The session has ended: reading it again fails, and the login page is shown.
        if (error instanceof ApiError && error.status === 401 && query.queryKey !== keys.session) {
          void client.invalidateQueries({ queryKey: keys.session });
        }
      },
    }),
    defaultOptions: {
      queries: {
        // What a page shows when it is opened again is shown at once, and read anew behind it.
        staleTime: 1000,
        retry: (failures, error) =>
          !(error instanceof ApiError && error.status >= 400 && error.status < 500) && failures < 2,
        refetchOnWindowFocus: true,
      },
    },
  });
  return client;
}
