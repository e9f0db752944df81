import { render } from "@testing-library/react";
import type { ReactNode } from "react";
import { expect, it } from "vitest";

import { Arguments, EnqueuedOrDue, Ran, RowDisplayProvider, Waited } from "@/components/jobs/job-table-cells";
import { aJob, at } from "@/test/factories";

function textOf(cell: ReactNode, hasAbsoluteTimes = false): string {
  const display = { hasAbsoluteTimes, parametersOf: () => ({ index: ["customer"], positional: [] }) };
  return render(<RowDisplayProvider value={display}>{cell}</RowDisplayProvider>).container.textContent;
}

it("shows how long a job waited and ran in two columns", () => {
  const job = aJob.completed({ enqueued_at: at(0), claimed_at: at(90), ended_at: at(93.5) });

  expect(textOf(<Waited job={job} />)).toBe("1 min 30 s");
  expect(textOf(<Ran job={job} />)).toBe("3.5 s");
});

it("counts the wait of a delayed job from its due time", () => {
  const job = aJob.completed({ enqueued_at: at(0), due_at: at(60), claimed_at: at(62), ended_at: at(63) });

  expect(textOf(<Waited job={job} />)).toBe("2 s");
});

it("shows neither for a scheduled job", () => {
  expect(textOf(<Waited job={aJob.scheduled()} />)).toBe("–");
  expect(textOf(<Ran job={aJob.scheduled({ claimed_at: at(1) })} />)).toBe("–");
});

it("shows the time itself inside a time range", () => {
  const job = aJob.completed({ enqueued_at: "2026-11-18T03:00:12Z" });

  expect(textOf(<EnqueuedOrDue job={job} />)).toMatch(/ago$|^in /);
  expect(textOf(<EnqueuedOrDue job={job} />, true)).toMatch(/^1[78] Nov \d\d:\d\d:12$/);
});

it("shows the indexed argument first", () => {
  const job = aJob.pending({ data: '{"to":"ada@example.com","customer":4711}' });

  expect(textOf(<Arguments job={job} />)).toBe("customer 4711, to ada@example.com");
});
