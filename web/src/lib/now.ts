/** The time, once a second for everything that shows how long ago something was: one timer, not one per row. */

import { useSyncExternalStore } from "react";

const listeners = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(tell: () => void): () => void {
  listeners.add(tell);
  timer ??= setInterval(() => {
    now = Date.now();
    listeners.forEach((one) => one());
  }, 1000);
  return () => {
    listeners.delete(tell);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** How far this browser's clock is behind the store's: spans are told by the store's clock. */
let skew = 0;

export function learnServerTime(at: string | number): void {
  skew = new Date(at).getTime() - Date.now();
}

export function serverNow(): number {
  return Date.now() + skew;
}

export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now) + skew;
}
