/** What needs attention: findings of the health rules, and their acknowledgement. */

import { api, unwrap, type Schemas } from "@/api/http-client";

export type Finding = Schemas["Finding"];
export type Verdict = Schemas["OverviewVerdict"];

/** How long a finding stays out of the verdict; without an end, until the problem ends. */
export interface Acknowledgement {
  readonly note: string;
  readonly snooze_s?: number;
}

export function acknowledgeFinding(key: string, body: Acknowledgement) {
  return unwrap(api.POST("/api/attention/{key}/acknowledge", { params: { path: { key } }, body }));
}

export function removeAcknowledgement(key: string) {
  return unwrap(api.DELETE("/api/attention/{key}/acknowledge", { params: { path: { key } } }));
}
