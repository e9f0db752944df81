import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";

import { logOut } from "@/api/session";
import { useToast } from "@/components/toasts";

/** Ends the session, forgets what it has read, and shows the login. */
export function useLogOut(): () => Promise<void> {
  const client = useQueryClient();
  const navigate = useNavigate();
  const toast = useToast();
  return async () => {
    try {
      await logOut();
      client.clear();
      await navigate({ to: "/login", search: {} });
    } catch (error) {
      toast.error(error);
    }
  };
}
