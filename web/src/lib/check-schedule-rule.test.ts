import { expect, it } from "vitest";

import { checkScheduleRule } from "@/lib/check-schedule-rule";

const RULE = { kind: "cron", cron: "0 9 * * 1-5", tz: "Europe/Oslo", every: "" } as const;

it.each(["0 9 * * 1-5", "0 9 * * MON-FRI", "30 0 9 * * 1", "@daily", " 0 9 * * * "])(
  "takes %j for a whole rule",
  (cron) => {
    expect(checkScheduleRule({ ...RULE, cron })).toBeNull();
  },
);

it.each(["", "0", "0 9 * *", "0 9 * * 1-", "0 9 * * 1,", "*/5 * * * */", "@dai", "1 2 3 4 5 6 7"])(
  "says that %j is not all there",
  (cron) => {
    expect(checkScheduleRule({ ...RULE, cron })?.field).toBe("cron");
  },
);

it("knows time zones by name", () => {
  expect(checkScheduleRule({ ...RULE, tz: "Europe/Os" })?.field).toBe("tz");
  expect(checkScheduleRule({ ...RULE, tz: "" })?.field).toBe("tz");
  expect(checkScheduleRule({ ...RULE, tz: "UTC" })).toBeNull();
});

it("wants a second at least between two times", () => {
  expect(checkScheduleRule({ ...RULE, kind: "every", every: "0.5" })?.field).toBe("every");
  expect(checkScheduleRule({ ...RULE, kind: "every", every: "" })?.field).toBe("every");
  expect(checkScheduleRule({ ...RULE, kind: "every", every: "60" })).toBeNull();
});
