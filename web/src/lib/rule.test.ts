import { expect, it } from "vitest";

import { gapOf } from "@/lib/rule";

const RULE = { kind: "cron", cron: "0 9 * * 1-5", tz: "Europe/Oslo", every: "" } as const;

it.each(["0 9 * * 1-5", "0 9 * * MON-FRI", "30 0 9 * * 1", "@daily", " 0 9 * * * "])(
  "takes %j for a whole rule",
  (cron) => {
    expect(gapOf({ ...RULE, cron })).toBeNull();
  },
);

it.each(["", "0", "0 9 * *", "0 9 * * 1-", "0 9 * * 1,", "*/5 * * * */", "@dai", "1 2 3 4 5 6 7"])(
  "says that %j is not all there",
  (cron) => {
    expect(gapOf({ ...RULE, cron })?.field).toBe("cron");
  },
);

it("knows time zones by name", () => {
  expect(gapOf({ ...RULE, tz: "Europe/Os" })?.field).toBe("tz");
  expect(gapOf({ ...RULE, tz: "" })?.field).toBe("tz");
  expect(gapOf({ ...RULE, tz: "UTC" })).toBeNull();
});

it("wants a second at least between two times", () => {
  expect(gapOf({ ...RULE, kind: "every", every: "0.5" })?.field).toBe("every");
  expect(gapOf({ ...RULE, kind: "every", every: "" })?.field).toBe("every");
  expect(gapOf({ ...RULE, kind: "every", every: "60" })).toBeNull();
});
