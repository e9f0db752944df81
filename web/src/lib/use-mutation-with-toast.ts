/** A mutation with a toast and cache invalidation. */

import { useMutation, useQueryClient, type QueryKey } from "@tanstack/react-query";
import type { ReactNode } from "react";

import { useToast } from "@/components/toasts";

interface ActionOptions<V, A> {
  /** The request. */
  run: (variables: V) => Promise<A>;
  /** The toast on success. */
  successMessage: (variables: V, result: A) => ReactNode;
  /** Query keys to invalidate on success. */
  invalidates: readonly QueryKey[];
  onDone?: () => void;
  /** No toast on error: the dialog shows it. */
  hidesErrors?: boolean;
}

export function useMutationWithToast<V, A>({
  run,
  successMessage,
  invalidates,
  onDone,
  hidesErrors = false,
}: ActionOptions<V, A>) {
  const client = useQueryClient();
  const toast = useToast();
  return useMutation({
    mutationFn: run,
    onSuccess: async (result, variables) => {
      toast.success(successMessage(variables, result));
      onDone?.();
      await Promise.all(invalidates.map((queryKey) => client.invalidateQueries({ queryKey })));
    },
    onError: (error) => {
      if (!hidesErrors) toast.error(error);
    },
  });
}
