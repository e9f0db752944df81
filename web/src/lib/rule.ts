/** What can be said of a schedule's rule before the server is asked: whether it is all there. */

/** The parts of a rule as they are typed. */
export interface TypedRule {
  readonly kind: "cron" | "every";
  readonly cron: string;
  readonly tz: string;
  /** Seconds. */
  readonly every: string;
}

/** What is missing, and of which field. */
export interface Gap {
  readonly field: "cron" | "tz" | "every";
  readonly message: string;
}

const NAMED = /^@(hourly|daily|midnight|weekly|monthly|yearly|annually)$/;

/** Null where the rule is all there. Whether it is right is for the server to say. */
export function gapOf({ kind, cron, tz, every }: TypedRule): Gap | null {
  if (kind === "every") return Number(every) >= 1 ? null : { field: "every", message: "One second at least" };
  if (!isWhole(cron.trim())) {
    return { field: "cron", message: "Five fields: minute, hour, day, month, weekday" };
  }
  return isZone(tz) ? null : { field: "tz", message: "There is no such time zone: Europe/Oslo is one" };
}

function isWhole(cron: string): boolean {
  if (cron.startsWith("@")) return NAMED.test(cron);
  const fields = cron.split(/\s+/);
  return (fields.length === 5 || fields.length === 6) && !/[-,/]$/.test(cron);
}

function isZone(tz: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: tz });
    return tz !== "";
  } catch {
    return false;
  }
}
