/** What is asked before something is done to a job. Each closes when it is done, and says why when it is not. */

import { useId, useState, type ReactNode } from "react";

import type { Job, JobChange } from "@/api/job";
import { Button } from "@/components/button";
import { Confirm, Dialog } from "@/components/dialog";
import { SelectField, TextField } from "@/components/field";
import { PRIORITIES } from "@/components/job/facts";
import { JsonEditor } from "@/components/json/editor";
import { pretty, tryParseJson } from "@/lib/json";
import { fromInput, toInput } from "@/lib/moment-input";
import { serverNow } from "@/lib/now";
import { exact } from "@/lib/time";
import { useZone } from "@/lib/zone";

export interface Asking {
  readonly job: Job;
  readonly onClose: () => void;
  readonly isBusy: boolean;
  readonly error: unknown;
}

interface AskProps extends Asking {
  title: string;
  description?: ReactNode;
  verb: string;
  isReady?: boolean;
  isDangerous?: boolean;
  onSubmit: () => void;
  className?: string;
  children: ReactNode;
}

/** A form in a dialog: Enter sends it. */
function Ask({
  title,
  description,
  verb,
  isReady = true,
  isDangerous,
  onSubmit,
  className,
  children,
  ...asking
}: AskProps) {
  const form = useId();
  return (
    <Dialog
      isOpen
      onClose={asking.onClose}
      title={title}
      description={description}
      className={className}
      actions={
        <>
          <Button onClick={asking.onClose}>Keep as it is</Button>
          <Button
            type="submit"
            form={form}
            look={isDangerous ? "danger" : "primary"}
            disabled={!isReady}
            isBusy={asking.isBusy}
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
          if (isReady && !asking.isBusy) onSubmit();
        }}
      >
        {children}
        {asking.error instanceof Error && (
          <p role="alert" className="text-failed">
            {asking.error.message}
          </p>
        )}
      </form>
    </Dialog>
  );
}

export function CancelDialog({ onCancel, ...asking }: Asking & { onCancel: (reason: string) => void }) {
  const [reason, setReason] = useState("");
  const isRunning = asking.job.status === "PROCESSING";
  return (
    <Ask
      {...asking}
      title={`Cancel ${asking.job.jobId}?`}
      description={
        isRunning ? "Its handler is told to stop." : "It will never start; what waits for it is cancelled, too."
      }
      verb="Cancel the job"
      isDangerous
      onSubmit={() => onCancel(reason.trim())}
    >
      <TextField
        label="Why (kept with the job)"
        value={reason}
        onChange={setReason}
        maxLength={500}
        autoComplete="off"
        placeholder="by request"
      />
    </Ask>
  );
}

export function DeleteDialog({ onDelete, ...asking }: Asking & { onDelete: () => void }) {
  const isRunning = asking.job.status === "PROCESSING";
  return (
    <Confirm
      isOpen
      onClose={asking.onClose}
      title={`Delete ${asking.job.jobId}?`}
      verb="Delete"
      isDangerous
      isBusy={asking.isBusy}
      error={asking.error}
      onConfirm={onDelete}
    >
      This run goes with its data, result, log and history, for good.
      {isRunning && " Its handler is told to stop."}
      {asking.job.workflow !== null && " For its workflow the step counts as failed."}
    </Confirm>
  );
}

export function DataDialog({
  willRedrive,
  onData,
  ...asking
}: Asking & { willRedrive: boolean; onData: (data: string) => void }) {
  const [text, setText] = useState(() => pretty(asking.job.data));
  const isJson = tryParseJson(text) !== null;
  return (
    <Ask
      {...asking}
      title={willRedrive ? `Edit and redrive ${asking.job.jobId}` : `Edit the data of ${asking.job.jobId}`}
      description={
        willRedrive
          ? "It runs again with this data; its counts start anew."
          : "It will run with this data. A masked value stands for the one that is stored."
      }
      verb={willRedrive ? "Save and redrive" : "Save"}
      isReady={isJson}
      onSubmit={() => onData(text)}
      className="max-w-3xl"
    >
      <JsonEditor label="Data" value={text} onChange={setText} error={isJson ? null : "This is not JSON yet"} />
    </Ask>
  );
}

const SOON = [
  { label: "Now", ms: 0 },
  { label: "In 5 min", ms: 300_000 },
  { label: "In 1 h", ms: 3_600_000 },
  { label: "In 1 day", ms: 86_400_000 },
] as const;

export function RescheduleDialog({ onChange, ...asking }: Asking & { onChange: (change: JobChange) => void }) {
  const zone = useZone();
  const due = asking.job.due_at;
  const [text, setText] = useState(() => toInput(due === null ? serverNow() : new Date(due).getTime(), zone));
  const at = fromInput(text, zone);
  return (
    <Ask
      {...asking}
      title={`When shall ${asking.job.jobId} run?`}
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
        hint={at === null ? "Choose a date and a time" : exact(at, zone)}
      />
      <div role="group" aria-label="Soon" className="flex flex-wrap gap-2">
        {SOON.map(({ label, ms }) => (
          <Button key={label} disabled={asking.isBusy} onClick={() => onChange({ delay: ms / 1000 })}>
            {label}
          </Button>
        ))}
      </div>
    </Ask>
  );
}

export function PriorityDialog({ onChange, ...asking }: Asking & { onChange: (change: JobChange) => void }) {
  const [text, setText] = useState(String(asking.job.priority));
  const value = Number(text);
  const isReady = text.trim() !== "" && Number.isInteger(value) && value >= -100 && value <= 100;
  const named = PRIORITIES.some((one) => String(one.value) === text) ? text : "other";
  return (
    <Ask
      {...asking}
      title={`Priority of ${asking.job.jobId}`}
      description="The smaller the number, the earlier it starts."
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
            { value: "other", label: "another" },
          ]}
        />
        <TextField
          label="Number, -100 to 100"
          type="number"
          min={-100}
          max={100}
          value={text}
          onChange={setText}
          error={isReady ? null : "A whole number from -100 to 100"}
        />
      </div>
    </Ask>
  );
}
