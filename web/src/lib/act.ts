/** A change that the reader asks for: done, told, and read again. */

import { useMutation, useQueryClient, type QueryKey } from "@tanstack/react-query";
import type { ReactNode } from "react";

import { useToasts } from "@/components/toasts";

interface Act<V, A> {
  /** What is asked of the server. */
  act: (asked: V) => Promise<A>;
  /** What is said when it is done. */
  said: (asked: V, answer: A) => ReactNode;
  /** What is old then. */
  changes: readonly QueryKey[];
  onDone?: () => void;
  /** The dialog shows what went wrong itself. */
  isQuiet?: boolean;
}

export function useAct<V, A>({ act, said, changes, onDone, isQuiet = false }: Act<V, A>) {
  const client = useQueryClient();
  const { say, complain } = useToasts();
  return useMutation({
    mutationFn: act,
    onSuccess: async (answer, asked) => {
      say(said(asked, answer));
      onDone?.();
      await Promise.all(changes.map((queryKey) => client.invalidateQueries({ queryKey })));
    },
    onError: (error) => {
      if (!isQuiet) complain(error);
    },
  });
}
