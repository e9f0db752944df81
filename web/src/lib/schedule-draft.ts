/** The state of the schedule editor, and its mapping to and from the API. */

import { type Schemas } from "@/api/http-client";
import type { Schedule } from "@/api/schedules";
import type { RuleInput } from "@/lib/check-schedule-rule";

export type Rule = Schemas["CronRule"] | Schemas["EveryRule"];

/** The state of the schedule editor. */
export interface ScheduleDraft extends RuleInput {
  readonly name: string;
  readonly type: string;
  /** Start of the interval; null is 1970. */
  readonly anchor: string | null;
  readonly data: string;
  readonly misfire: Schedule["misfire"];
  readonly overlap: Schedule["overlap"];
}

export function toScheduleDraft(schedule: Schedule | null, zone: string): ScheduleDraft {
  const rule = schedule?.rule ?? {};
  const ruleField = (name: string, otherwise: string) =>
    typeof rule[name] === "string" || typeof rule[name] === "number" ? String(rule[name]) : otherwise;
  return {
    name: schedule?.name ?? "",
    type: schedule?.type ?? "",
    kind: rule.type === "every" ? "every" : "cron",
    cron: ruleField("expression", "0 9 * * 1-5"),
    tz: ruleField("tz", zone),
    every: ruleField("interval", "3600"),
    anchor: ruleField("anchor", "") || null,
    data: schedule?.data ?? "{}",
    misfire: schedule?.misfire ?? "once",
    overlap: schedule?.overlap ?? "queue",
  };
}

export function toRule({ kind, cron, tz, every, anchor }: ScheduleDraft): Rule {
  return kind === "cron" ? { cron, tz } : { every: Number(every), anchor };
}
