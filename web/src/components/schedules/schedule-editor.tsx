import { useState } from "react";

import type { Schedule, SchedulePreview } from "@/api/schedules";
import { Button } from "@/components/buttons";
import { Dialog } from "@/components/dialog";
import { SelectField, TextArea, TextField } from "@/components/form-fields";
import { formatRunTime } from "@/components/schedules/format-run-time";
import { SegmentedControl } from "@/components/segmented-control";
import type { RuleError } from "@/lib/check-schedule-rule";
import { tryParseJson } from "@/lib/lossless-json";
import type { ScheduleDraft } from "@/lib/schedule-draft";

const MISFIRE = [
  { value: "once", label: "once: one job for all missed runs" },
  { value: "all", label: "all: one job for each missed run" },
  { value: "skip", label: "skip: no job" },
] as const;
const OVERLAP = [
  { value: "queue", label: "queue: enqueue it anyway" },
  { value: "skip", label: "skip: do not enqueue it" },
] as const;

interface ScheduleEditorProps {
  draft: ScheduleDraft;
  /** The schedule that is edited; null for a new one. */
  schedule: Schedule | null;
  /** Tasks that can be selected. */
  tasks: readonly string[];
  preview: SchedulePreview | undefined;
  /** The error of the rule. */
  ruleError: RuleError | null;
  isBusy: boolean;
  error: unknown;
  onChange: (draft: ScheduleDraft) => void;
  onClose: () => void;
  /** `data` is the JSON text; undefined if it was not edited. */
  onSave: (data: string | undefined) => void;
}

/** Edits a schedule's rule and policies, with a preview of the next runs. */
export function ScheduleEditor(props: ScheduleEditorProps) {
  const { draft, schedule, tasks, preview, ruleError, isBusy, error, onChange, onClose, onSave } = props;
  const [dataError, setDataError] = useState<string | null>(null);
  const wrong = (field: RuleError["field"]) => (ruleError?.field === field ? ruleError.message : null);
  const change = (part: Partial<ScheduleDraft>) => onChange({ ...draft, ...part });

  function save() {
    const data = draft.data.trim() || "{}";
    const isUntouched = draft.data === schedule?.data;
    const isValid = isUntouched || tryParseJson(data) !== null;
    setDataError(isValid ? null : "Not valid JSON");
    if (isValid) onSave(isUntouched ? undefined : data);
  }

  return (
    <Dialog
      isOpen
      onClose={onClose}
      title={schedule === null ? "New schedule" : `Edit ${schedule.name}`}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            variant="primary"
            isBusy={isBusy}
            disabled={ruleError !== null || draft.name.trim() === "" || draft.type === ""}
            onClick={save}
          >
            {schedule === null ? "Create" : "Save"}
          </Button>
        </>
      }
    >
      <div className="grid gap-3 sm:grid-cols-2">
        {schedule === null && (
          <>
            <TextField label="Name" value={draft.name} onChange={(name) => change({ name })} spellCheck={false} />
            <SelectField
              label="Task"
              value={draft.type}
              onChange={(type) => change({ type })}
              options={[{ value: "", label: "Select a task" }, ...tasks.map((task) => ({ value: task, label: task }))]}
            />
          </>
        )}
        <div className="sm:col-span-2">
          <SegmentedControl
            label="Kind of rule"
            value={draft.kind}
            onChange={(kind) => change({ kind })}
            options={[
              { value: "cron", label: "Cron" },
              { value: "every", label: "Interval" },
            ]}
          />
        </div>
        {draft.kind === "cron" ? (
          <>
            <TextField
              label="Cron expression"
              value={draft.cron}
              onChange={(cron) => change({ cron })}
              error={wrong("cron")}
              spellCheck={false}
            />
            <TextField
              label="Time zone"
              value={draft.tz}
              onChange={(tz) => change({ tz })}
              error={wrong("tz")}
              spellCheck={false}
            />
          </>
        ) : (
          <TextField
            label="Interval (seconds)"
            type="number"
            min={1}
            value={draft.every}
            onChange={(every) => change({ every })}
            error={wrong("every")}
          />
        )}
        <div role="status" className="min-h-32 rounded-md bg-sunken px-3 py-2 text-[13px] sm:col-span-2">
          {preview !== undefined && (
            <>
              <p className="font-medium">{preview.words}</p>
              <ol className="tabular-nums text-muted">
                {preview.next_runs.map((at) => (
                  <li key={at}>{formatRunTime(at, "own")}</li>
                ))}
              </ol>
            </>
          )}
        </div>
        {schedule?.is_data_cut ? (
          <p className="text-[13px] text-muted sm:col-span-2">
            The data is too long to be edited here; it stays as it is.
          </p>
        ) : (
          <TextArea
            label="Data (JSON)"
            value={draft.data}
            onChange={(data) => change({ data })}
            error={dataError}
            className="sm:col-span-2"
            spellCheck={false}
          />
        )}
        <SelectField
          label="Missed runs"
          value={draft.misfire}
          onChange={(misfire) => change({ misfire })}
          options={MISFIRE}
        />
        <SelectField
          label="While the previous job is running"
          value={draft.overlap}
          onChange={(overlap) => change({ overlap })}
          options={OVERLAP}
        />
      </div>
      {error !== null && error !== undefined && (
        <p role="alert" className="mt-2 text-failed">
          {error instanceof Error ? error.message : "The request failed"}
        </p>
      )}
    </Dialog>
  );
}
