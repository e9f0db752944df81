/** Connects the event stream to the query cache, and provides the connection status. */

import { useQueryClient, type Query } from "@tanstack/react-query";
import { createContext, useContext, useEffect, useMemo, useRef, useState, type ReactNode } from "react";

import { ApiError } from "@/api/http-client";
import { useSession } from "@/api/session";
import { EventStream, type Status } from "@/live/event-stream";
import { QueryRefresher } from "@/live/query-refresher";

interface Live {
  readonly status: Status;
  readonly setPaused: (isPaused: boolean) => void;
}

const LiveContext = createContext<Live>({ status: "connecting", setPaused: () => undefined });

export function LiveProvider({ children }: { children: ReactNode }) {
  const client = useQueryClient();
  const [status, setStatus] = useState<Status>("connecting");
  const stream = useRef<EventStream | null>(null);
  // Workers, workflows and the autoscaler belong to no queue: a token limited to some queues has no access to their
  // events.
  const ofAll = useSession().queues.length > 0 ? "" : ",workers,workflows,scaling";
  const topics = `jobs,queues,schedules${ofAll}`;

  useEffect(() => {
    const freshener = new QueryRefresher(client);
    const opened = new EventStream(topics, {
      onChanges: (changes) => freshener.apply(changes),
      onReset: () => freshener.applyUnknown(),
      onStatus: (changed) => {
        setStatus(changed);
        if (changed === "live") void client.refetchQueries({ type: "active", predicate: hasServerError });
      },
    });
    stream.current = opened;
    opened.start();
    return () => {
      opened.stop();
      freshener.stop();
    };
  }, [client, topics]);

  const live = useMemo(() => ({ status, setPaused: (is: boolean) => stream.current?.setPaused(is) }), [status]);
  return <LiveContext value={live}>{children}</LiveContext>;
}

/** The query failed while the server was unreachable, and was not refused. */
function hasServerError({ state: { error } }: Query): boolean {
  return error instanceof ApiError && (error.status === 0 || error.status >= 500);
}

export function useLive(): Live {
  return useContext(LiveContext);
}
