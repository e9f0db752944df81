import { expect, it } from "vitest";

import { logLinesByAttempt } from "@/lib/log-lines-of-attempt";
import { anAttempt, at } from "@/test/factories";

const line = (seconds: number, text: string) => ({ at: at(seconds), level: "info", text });

it("assigns each line to the attempt that wrote it", () => {
  const [first, second] = [anAttempt(1, 10, 20, "failed"), anAttempt(2, 30, null)];
  const lines = [line(10, "begins"), line(21, "stored after the end"), line(30, "again"), line(35, "goes on")];

  const found = logLinesByAttempt([first, second], lines);

  expect(found.get(first)?.map(({ text }) => text)).toEqual(["begins", "stored after the end"]);
  expect(found.get(second)?.map(({ text }) => text)).toEqual(["again", "goes on"]);
});

it("leaves out lines of attempts that are no longer stored", () => {
  const attempt = anAttempt(9, 100, 110);

  expect(logLinesByAttempt([attempt], [line(5, "long ago")]).get(attempt)).toBeUndefined();
});
