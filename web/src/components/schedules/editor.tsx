import { useState } from "react";

import type { Draft, Schedule, SchedulePreview } from "@/api/schedules";
import { Button } from "@/components/button";
import { Choice } from "@/components/choice";
import { Dialog } from "@/components/dialog";
import { SelectField, TextArea, TextField } from "@/components/field";
import { told } from "@/components/schedules/times";
import { tryParseJson } from "@/lib/json";
import type { Gap } from "@/lib/rule";

const MISFIRE = [
  { value: "once", label: "once: one job for all missed times" },
  { value: "all", label: "all: a job for each missed time" },
  { value: "skip", label: "skip: none" },
] as const;
const OVERLAP = [
  { value: "queue", label: "queue: it comes, and waits its turn" },
  { value: "skip", label: "skip: it does not come" },
] as const;

interface EditorProps {
  draft: Draft;
  /** The one that is changed; null for a new one. */
  schedule: Schedule | null;
  /** Tasks to choose from. */
  tasks: readonly string[];
  preview: SchedulePreview | undefined;
  /** What is wrong with the rule. */
  refusal: Gap | null;
  isBusy: boolean;
  error: unknown;
  onChange: (draft: Draft) => void;
  onClose: () => void;
  /** With the data as it was written; undefined where it was not touched. */
  onSave: (data: string | undefined) => void;
}

/** A schedule's rule and policies; what the rule means is shown while it is written. */
export function ScheduleEditor(props: EditorProps) {
  const { draft, schedule, tasks, preview, refusal, isBusy, error, onChange, onClose, onSave } = props;
  const [dataError, setDataError] = useState<string | null>(null);
  const wrong = (field: Gap["field"]) => (refusal?.field === field ? refusal.message : null);
  const change = (part: Partial<Draft>) => onChange({ ...draft, ...part });

  function save() {
    const data = draft.data.trim() || "{}";
    const isJson = tryParseJson(data) !== null;
    setDataError(isJson ? null : "This is no JSON");
    if (isJson) onSave(draft.data === schedule?.data ? undefined : data);
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
            look="primary"
            isBusy={isBusy}
            disabled={refusal !== null || draft.name.trim() === "" || draft.type === ""}
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
              options={[{ value: "", label: "Choose a task" }, ...tasks.map((task) => ({ value: task, label: task }))]}
            />
          </>
        )}
        <div className="sm:col-span-2">
          <Choice
            label="Kind of rule"
            value={draft.kind}
            onChange={(kind) => change({ kind })}
            options={[
              { value: "cron", label: "At times (cron)" },
              { value: "every", label: "Every so often" },
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
            label="Seconds"
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
              <ol className="figures text-muted">
                {preview.next_runs.map((at) => (
                  <li key={at}>{told(at, "own")}</li>
                ))}
              </ol>
            </>
          )}
        </div>
        <TextArea
          label="Data, as JSON"
          value={draft.data}
          onChange={(data) => change({ data })}
          error={dataError}
          className="sm:col-span-2"
          spellCheck={false}
        />
        <SelectField
          label="Times that were missed"
          value={draft.misfire}
          onChange={(misfire) => change({ misfire })}
          options={MISFIRE}
        />
        <SelectField
          label="While the last job runs"
          value={draft.overlap}
          onChange={(overlap) => change({ overlap })}
          options={OVERLAP}
        />
      </div>
      {error !== null && error !== undefined && (
        <p role="alert" className="mt-2 text-failed">
          {error instanceof Error ? error.message : "That did not work"}
        </p>
      )}
    </Dialog>
  );
}
