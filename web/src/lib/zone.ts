/** Whether moments are shown in the reader's zone or in UTC. */

import { useSyncExternalStore } from "react";

import { remember, remembered } from "@/lib/storage";
import type { Zone } from "@/lib/time";

const listeners = new Set<() => void>();

export function chooseZone(zone: Zone): void {
  remember("zone", zone === "utc" ? "utc" : null);
  listeners.forEach((tell) => tell());
}

export function useZone(): Zone {
  return useSyncExternalStore(
    (tell) => {
      listeners.add(tell);
      return () => listeners.delete(tell);
    },
    () => (remembered("zone") === "utc" ? "utc" : "local"),
  );
}
