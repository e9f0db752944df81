import { useSyncExternalStore } from "react";

/** Whether the window fits a media query now. */
export function useMedia(query: string): boolean {
  return useSyncExternalStore(
    (tell) => {
      const list = window.matchMedia(query);
      list.addEventListener("change", tell);
      return () => list.removeEventListener("change", tell);
    },
    () => window.matchMedia(query).matches,
  );
}
