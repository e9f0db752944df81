/** The store's clock, updated once a second by one shared timer. */

import { useSyncExternalStore } from "react";

const listeners = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(notify: () => void): () => void {
  listeners.add(notify);
  timer ??= setInterval(() => {
    now = Date.now();
    listeners.forEach((one) => one());
  }, 1000);
  return () => {
    listeners.delete(notify);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** Offset of the store's clock to this browser's, in ms. */
let skew = 0;

export function syncServerClock(at: string | number): void {
  skew = new Date(at).getTime() - Date.now();
}

export function serverNow(): number {
  return Date.now() + skew;
}

export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now) + skew;
}
