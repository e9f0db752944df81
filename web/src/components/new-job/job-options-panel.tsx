import { useId } from "react";

import type { TaskInfo } from "@/api/tasks";
import { SelectField, TextField } from "@/components/form-fields";
import { Panel } from "@/components/panel";
import type { FieldErrors } from "@/lib/form-field-errors";
import { formatDuration } from "@/lib/format-time";
import type { NewJobDraft } from "@/lib/new-job-draft";

const START_OPTIONS = [
  { value: "now", label: "as soon as possible" },
  { value: "delay", label: "after a delay" },
  { value: "run_at", label: "at a time" },
] as const;
const SAME_ID_OPTIONS = [
  { value: "update", label: "update that job" },
  { value: "ignore", label: "keep that job" },
  { value: "reject", label: "reject this job" },
] as const;

interface OptionsPanelProps {
  draft: NewJobDraft;
  task: TaskInfo | undefined;
  queues: readonly string[];
  errors: FieldErrors;
  onChange: (part: Partial<NewJobDraft>) => void;
}

/** Queue, priority, start time, id, lock and limits. Placeholders show the defaults of the task. */
export function JobOptionsPanel({ draft, task, queues, errors, onChange }: OptionsPanelProps) {
  const queuesId = useId();
  const text = (name: "queue" | "id" | "lock" | "tags" | "timeout" | "attempts" | "expires" | "delay") => ({
    value: draft[name],
    onChange: (value: string) => onChange({ [name]: value }),
    error: errors[name],
    autoComplete: "off",
    spellCheck: false,
  });
  return (
    <Panel title="Options">
      <div className="grid gap-3 sm:grid-cols-2">
        <TextField label="Queue" list={queuesId} placeholder={task?.queue ?? "default"} {...text("queue")} />
        <datalist id={queuesId}>
          {queues.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        <TextField
          label="Priority (lower runs first)"
          placeholder={String(task?.priority ?? 0)}
          hint="critical, high, medium, normal, low, or −100 to 100"
          value={draft.priority}
          onChange={(priority) => onChange({ priority })}
          error={errors.priority}
        />
        <SelectField
          label="Start"
          value={draft.start}
          options={START_OPTIONS}
          onChange={(start) => onChange({ start })}
        />
        {draft.start === "delay" && <TextField label="Delay (seconds)" inputMode="decimal" {...text("delay")} />}
        {draft.start === "run_at" && (
          <TextField
            label="Not before (local time)"
            type="datetime-local"
            value={draft.run_at}
            onChange={(run_at) => onChange({ run_at })}
            error={errors.run_at}
          />
        )}
        <TextField label="ID" placeholder="generated" {...text("id")} />
        {draft.id !== "" && (
          <SelectField
            label="If a job with this ID is waiting"
            value={draft.on_same_id}
            options={SAME_ID_OPTIONS}
            onChange={(on_same_id) => onChange({ on_same_id })}
          />
        )}
        <TextField
          label="Lock"
          placeholder="none"
          hint="Jobs with the same lock run one at a time."
          {...text("lock")}
        />
        <TextField label="Tags" placeholder="none" hint="Separated by commas." {...text("tags")} />
        <TextField
          label="Timeout (seconds)"
          placeholder={task?.timeout_ms ? formatDuration(task.timeout_ms) : "task default"}
          inputMode="decimal"
          {...text("timeout")}
        />
        <TextField
          label="Attempts"
          placeholder={String(task?.attempts ?? "task default")}
          inputMode="numeric"
          {...text("attempts")}
        />
        <TextField
          label="Expires after (seconds)"
          placeholder="never"
          hint="If it has not started by then, it is cancelled."
          inputMode="decimal"
          {...text("expires")}
        />
      </div>
    </Panel>
  );
}
