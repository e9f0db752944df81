/** The theme: dark, light or the system's. `public/theme.js` applies it before the first paint. */

import { useSyncExternalStore } from "react";

import { writeStored, readStored } from "@/lib/local-storage";

export type Theme = "system" | "light" | "dark";

const listeners = new Set<() => void>();
const system = window.matchMedia("(prefers-color-scheme: dark)");
system.addEventListener("change", () => listeners.forEach((notify) => notify()));

export function setTheme(theme: Theme): void {
  writeStored("theme", theme === "system" ? null : theme);
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  listeners.forEach((notify) => notify());
}

function subscribe(notify: () => void): () => void {
  listeners.add(notify);
  return () => listeners.delete(notify);
}

function storedTheme(): Theme {
  const theme = readStored("theme");
  return theme === "dark" || theme === "light" ? theme : "system";
}

/** The selected theme. */
export function useTheme(): Theme {
  return useSyncExternalStore(subscribe, storedTheme);
}

/** Whether the dark theme is shown; charts are redrawn when it changes. */
export function useIsDark(): boolean {
  return useSyncExternalStore(subscribe, () => {
    const theme = storedTheme();
    return theme === "system" ? system.matches : theme === "dark";
  });
}
