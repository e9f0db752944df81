/** Keeps every page fresh, and says honestly when it cannot. */

import { useQueryClient, type Query } from "@tanstack/react-query";
import { createContext, useContext, useEffect, useMemo, useRef, useState, type ReactNode } from "react";

import { ApiError } from "@/api/client";
import { useSession } from "@/api/session";
import { Freshener } from "@/live/changes";
import { Stream, type Status } from "@/live/stream";

interface Live {
  readonly status: Status;
  readonly setPaused: (isPaused: boolean) => void;
}

const LiveContext = createContext<Live>({ status: "connecting", setPaused: () => undefined });

export function LiveProvider({ children }: { children: ReactNode }) {
  const client = useQueryClient();
  const [status, setStatus] = useState<Status>("connecting");
  const stream = useRef<Stream | null>(null);
  // Workers and workflows concern all queues: who is limited to some is not told of them.
  const ofAll = useSession().queues.length > 0 ? "" : ",workers,workflows";
  const topics = `jobs,queues,schedules${ofAll}`;

  useEffect(() => {
    const freshener = new Freshener(client);
    const opened = new Stream(topics, {
      onChanges: (changes) => freshener.apply(changes),
      onReset: () => freshener.applyUnknown(),
      onStatus: (changed) => {
        setStatus(changed);
        if (changed === "live") void client.refetchQueries({ type: "active", predicate: isUnanswered });
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

/** What nobody could answer while the connection was lost, as against what was refused. */
function isUnanswered({ state: { error } }: Query): boolean {
  return error instanceof ApiError && (error.status === 0 || error.status >= 500);
}

export function useLive(): Live {
  return useContext(LiveContext);
}
