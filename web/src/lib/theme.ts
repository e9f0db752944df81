/** Dark, light, or as the system says. `public/theme.js` applies it before the page is painted. */

import { useSyncExternalStore } from "react";

import { remember, remembered } from "@/lib/storage";

export type Theme = "system" | "light" | "dark";

const listeners = new Set<() => void>();
const system = window.matchMedia("(prefers-color-scheme: dark)");
system.addEventListener("change", () => listeners.forEach((tell) => tell()));

export function chooseTheme(theme: Theme): void {
  remember("theme", theme === "system" ? null : theme);
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  listeners.forEach((tell) => tell());
}

function subscribe(tell: () => void): () => void {
  listeners.add(tell);
  return () => listeners.delete(tell);
}

function chosen(): Theme {
  const theme = remembered("theme");
  return theme === "dark" || theme === "light" ? theme : "system";
}

/** What was chosen. */
export function useTheme(): Theme {
  return useSyncExternalStore(subscribe, chosen);
}

/** What is shown: charts are drawn anew when it changes. */
export function useIsDark(): boolean {
  return useSyncExternalStore(subscribe, () => {
    const theme = chosen();
    return theme === "system" ? system.matches : theme === "dark";
  });
}
