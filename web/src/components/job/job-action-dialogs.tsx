/** The dialogs of the job actions. Each closes on success and shows the error otherwise. */

import { useId, useState, type ReactNode } from "react";

import type { JobChange } from "@/api/job-actions";
import type { Job } from "@/api/job-detail";
import { Button } from "@/components/buttons";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { Dialog } from "@/components/dialog";
import { SelectField, TextField } from "@/components/form-fields";
import { LazyJsonEditor } from "@/components/json/lazy-json-editor";
import { fromInputValue, toInputValue } from "@/lib/datetime-input-value";
import { formatExact } from "@/lib/format-time";
import { PRIORITIES } from "@/lib/job-priorities";
import { prettyJson, tryParseJson } from "@/lib/lossless-json";
import { serverNow } from "@/lib/server-clock";
import { useTimeZone } from "@/lib/time-zone-setting";

export interface ActionDialogProps {
  readonly job: Job;
  readonly onClose: () => void;
  readonly isBusy: boolean;
  readonly error: unknown;
}

interface FormDialogProps extends ActionDialogProps {
  title: string;
  description?: ReactNode;
  verb: string;
  isReady?: boolean;
  isDangerous?: boolean;
  onSubmit: () => void;
  className?: string;
  children: ReactNode;
}

/** A form in a dialog; Enter submits it. */
function FormDialog({
  title,
  description,
  verb,
  isReady = true,
  isDangerous,
  onSubmit,
  className,
  children,
  ...dialog
}: FormDialogProps) {
  const form = useId();
  return (
    <Dialog
      isOpen
      onClose={dialog.onClose}
      title={title}
      description={description}
      className={className}
      actions={
        <>
          <Button onClick={dialog.onClose}>Back</Button>
          <Button
            type="submit"
            form={form}
            variant={isDangerous ? "danger" : "primary"}
            disabled={!isReady}
            isBusy={dialog.isBusy}
          >
            {verb}
          </Button>
        </>
      }
    >
      <form
        id={form}
        className="flex flex-col gap-3"
        onSubmit={(event) => {
          event.preventDefault();
          if (isReady && !dialog.isBusy) onSubmit();
        }}
      >
        {children}
        {dialog.error instanceof Error && (
          <p role="alert" className="text-failed">
            {dialog.error.message}
          </p>
        )}
      </form>
    </Dialog>
  );
}

export function CancelDialog({ onCancel, ...dialog }: ActionDialogProps & { onCancel: (reason: string) => void }) {
  const [reason, setReason] = useState("");
  const isRunning = dialog.job.status === "PROCESSING";
  return (
    <FormDialog
      {...dialog}
      title={`Cancel ${dialog.job.jobId}?`}
      description={
        isRunning
          ? "The running handler is asked to stop."
          : "The job will not start. Jobs that depend on it are cancelled too."
      }
      verb="Cancel job"
      isDangerous
      onSubmit={() => onCancel(reason.trim())}
    >
      <TextField
        label="Reason (stored with the job)"
        value={reason}
        onChange={setReason}
        maxLength={500}
        autoComplete="off"
        placeholder="by request"
      />
    </FormDialog>
  );
}

export function DeleteDialog({ onDelete, ...dialog }: ActionDialogProps & { onDelete: () => void }) {
  const isRunning = dialog.job.status === "PROCESSING";
  return (
    <ConfirmDialog
      isOpen
      onClose={dialog.onClose}
      title={`Delete ${dialog.job.jobId}?`}
      verb="Delete"
      isDangerous
      isBusy={dialog.isBusy}
      error={dialog.error}
      onConfirm={onDelete}
    >
      This permanently deletes the run with its data, result, log and history.
      {isRunning && " The running handler is asked to stop."}
      {dialog.job.workflow !== null && " The step counts as failed in its workflow."}
    </ConfirmDialog>
  );
}

export function DataDialog({
  willRedrive,
  onData,
  ...dialog
}: ActionDialogProps & { willRedrive: boolean; onData: (data: string) => void }) {
  const [text, setText] = useState(() => prettyJson(dialog.job.data));
  const isJson = tryParseJson(text) !== null;
  return (
    <FormDialog
      {...dialog}
      title={willRedrive ? `Edit and redrive ${dialog.job.jobId}` : `Edit the data of ${dialog.job.jobId}`}
      description={
        willRedrive
          ? "The job is retried from attempt 1 with this data."
          : "The job will run with this data. Masked values keep their stored value."
      }
      verb={willRedrive ? "Save and redrive" : "Save"}
      isReady={isJson}
      onSubmit={() => onData(text)}
      className="max-w-3xl"
    >
      <LazyJsonEditor label="Data" value={text} onChange={setText} error={isJson ? null : "Not valid JSON yet"} />
    </FormDialog>
  );
}

const DELAYS = [
  { label: "Now", ms: 0 },
  { label: "In 5 min", ms: 300_000 },
  { label: "In 1 h", ms: 3_600_000 },
  { label: "In 1 day", ms: 86_400_000 },
] as const;

export function RescheduleDialog({
  onChange,
  ...dialog
}: ActionDialogProps & { onChange: (change: JobChange) => void }) {
  const zone = useTimeZone();
  const due = dialog.job.due_at;
  const [text, setText] = useState(() => toInputValue(due === null ? serverNow() : new Date(due).getTime(), zone));
  const at = fromInputValue(text, zone);
  return (
    <FormDialog
      {...dialog}
      title={`Reschedule ${dialog.job.jobId}`}
      verb="Reschedule"
      isReady={at !== null}
      onSubmit={() => at !== null && onChange({ run_at: new Date(at).toISOString() })}
    >
      <TextField
        label={zone === "utc" ? "Not before (UTC)" : "Not before"}
        type="datetime-local"
        step={1}
        value={text}
        onChange={setText}
        hint={at === null ? "Select a date and a time" : formatExact(at, zone)}
      />
      <div role="group" aria-label="Quick delays" className="flex flex-wrap gap-2">
        {DELAYS.map(({ label, ms }) => (
          <Button key={label} disabled={dialog.isBusy} onClick={() => onChange({ delay: ms / 1000 })}>
            {label}
          </Button>
        ))}
      </div>
    </FormDialog>
  );
}

export function PriorityDialog({ onChange, ...dialog }: ActionDialogProps & { onChange: (change: JobChange) => void }) {
  const [text, setText] = useState(String(dialog.job.priority));
  const value = Number(text);
  const isReady = text.trim() !== "" && Number.isInteger(value) && value >= -100 && value <= 100;
  const named = PRIORITIES.some((one) => String(one.value) === text) ? text : "other";
  return (
    <FormDialog
      {...dialog}
      title={`Priority of ${dialog.job.jobId}`}
      description="Lower numbers start first."
      verb="Change priority"
      isReady={isReady}
      onSubmit={() => onChange({ priority: value })}
    >
      <div className="grid grid-cols-2 gap-3">
        <SelectField
          label="Name"
          value={named}
          onChange={(chosen) => chosen !== "other" && setText(chosen)}
          options={[
            ...PRIORITIES.map((one) => ({ value: String(one.value), label: `${one.label} (${one.value})` })),
            { value: "other", label: "custom" },
          ]}
        />
        <TextField
          label="Number (-100 to 100)"
          type="number"
          min={-100}
          max={100}
          value={text}
          onChange={setText}
          error={isReady ? null : "An integer from -100 to 100"}
        />
      </div>
    </FormDialog>
  );
}
