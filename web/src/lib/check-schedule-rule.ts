/** Checks a schedule rule in the browser, before the server does. */

/** The typed parts of a rule. */
export interface RuleInput {
  readonly kind: "cron" | "every";
  readonly cron: string;
  readonly tz: string;
  /** Seconds. */
  readonly every: string;
}

/** The incomplete field and its message. */
export interface RuleError {
  readonly field: "cron" | "tz" | "every";
  readonly message: string;
}

const CRON_ALIAS = /^@(hourly|daily|midnight|weekly|monthly|yearly|annually)$/;

/** Returns the first incomplete field, or null. The server checks the rest. */
export function checkScheduleRule({ kind, cron, tz, every }: RuleInput): RuleError | null {
  if (kind === "every") return Number(every) >= 1 ? null : { field: "every", message: "At least one second" };
  if (!isCompleteCron(cron.trim())) {
    return { field: "cron", message: "Five fields: minute, hour, day, month, weekday" };
  }
  return isTimeZone(tz) ? null : { field: "tz", message: "Unknown time zone; example: Europe/Oslo" };
}

function isCompleteCron(cron: string): boolean {
  if (cron.startsWith("@")) return CRON_ALIAS.test(cron);
  const fields = cron.split(/\s+/);
  return (fields.length === 5 || fields.length === 6) && !/[-,/]$/.test(cron);
}

function isTimeZone(tz: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: tz });
    return tz !== "";
  } catch {
    return false;
  }
}
