/** The time zone setting: local or UTC. */

import { useSyncExternalStore } from "react";

import type { TimeZone } from "@/lib/format-time";
import { writeStored, readStored } from "@/lib/local-storage";

const listeners = new Set<() => void>();

export function setTimeZone(zone: TimeZone): void {
  writeStored("zone", zone === "utc" ? "utc" : null);
  listeners.forEach((notify) => notify());
}

export function useTimeZone(): TimeZone {
  return useSyncExternalStore(
    (notify) => {
      listeners.add(notify);
      return () => listeners.delete(notify);
    },
    () => (readStored("zone") === "utc" ? "utc" : "local"),
  );
}
