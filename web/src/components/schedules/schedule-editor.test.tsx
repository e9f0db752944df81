import { fireEvent, render, screen } from "@testing-library/react";
import { useState } from "react";
import { expect, it, vi } from "vitest";

import { ScheduleEditor } from "@/components/schedules/schedule-editor";
import { toScheduleDraft, toRule } from "@/lib/schedule-draft";
import { aSchedule } from "@/test/factories";

const SCHEDULE = aSchedule({
  rule: { type: "every", interval: 3600, anchor: "2026-01-01T00:30:00Z" },
  data: '{"account":9007199254740993}',
});

function show() {
  const onSave = vi.fn();
  function Editor() {
    const [draft, setDraft] = useState(() => toScheduleDraft(SCHEDULE, "UTC"));
    return (
      <ScheduleEditor
        draft={draft}
        schedule={SCHEDULE}
        tasks={[]}
        preview={undefined}
        ruleError={null}
        isBusy={false}
        error={null}
        onChange={setDraft}
        onClose={() => undefined}
        onSave={onSave}
      />
    );
  }
  render(<Editor />);
  return onSave;
}

function write(text: string) {
  fireEvent.change(screen.getByLabelText("Data (JSON)"), { target: { value: text } });
  fireEvent.click(screen.getByText("Save"));
}

it("passes data on as it was written, with every digit", () => {
  const onSave = show();
  write('{"account": 9007199254740995, "rate": 1.10}');
  expect(onSave).toHaveBeenCalledExactlyOnceWith('{"account": 9007199254740995, "rate": 1.10}');
});

it("leaves data alone that was not touched", () => {
  const onSave = show();
  fireEvent.click(screen.getByText("Save"));
  expect(onSave).toHaveBeenCalledExactlyOnceWith(undefined);
});

it("says what is no JSON, and keeps it to itself", () => {
  const onSave = show();
  write("{oops");
  expect(screen.getByText("Not valid JSON")).toBeVisible();
  expect(onSave).not.toHaveBeenCalled();
});

it("keeps what the rule counts from", () => {
  expect(toRule(toScheduleDraft(SCHEDULE, "UTC"))).toEqual({ every: 3600, anchor: "2026-01-01T00:30:00Z" });
});
