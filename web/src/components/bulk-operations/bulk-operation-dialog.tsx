/** The dialog of a bulk operation: counts the jobs, asks, shows the progress and the result. */

import { useQuery } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";

import {
  isRunning,
  operationQuery,
  startOperation,
  stopOperation,
  type Operation,
  type OperationTarget,
  type BulkAction,
  type OperationOptions,
  type OperationFilter,
} from "@/api/bulk-operations";
import { queryKeys } from "@/api/query-keys";
import { BULK_ACTIONS } from "@/components/bulk-operations/bulk-actions";
import { OperationProgress, OperationResult } from "@/components/bulk-operations/operation-progress-and-result";
import { Button } from "@/components/buttons";
import { Dialog } from "@/components/dialog";
import { SelectField, TextField } from "@/components/form-fields";
import { formatCount, formatPlural } from "@/lib/format-number";
import { PRIORITIES } from "@/lib/job-priorities";

/** The jobs to operate on. */
export type DialogTarget =
  /** All matching jobs. */
  | { readonly kind: "matching"; readonly where: OperationFilter; readonly words: ReactNode }
  /** Jobs selected one by one. */
  | { readonly kind: "selected"; readonly ids: readonly string[] };

interface BulkOperationDialogProps {
  action: BulkAction;
  target: DialogTarget;
  onClose: () => void;
  /** Jobs were changed: shown data may be stale. */
  onDone?: () => void;
}

export function BulkOperationDialog({ action, target, onClose, onDone }: BulkOperationDialogProps) {
  const [how, setHow] = useState<OperationOptions>({});
  const [startedId, setStartedId] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const about: OperationTarget = target.kind === "matching" ? { where: target.where } : { jobs: [...target.ids] };
  const probe: OperationOptions = action === "update" ? { priority: 0 } : {};
  const dry = useQuery({
    queryKey: queryKeys.operationCount(action, about),
    queryFn: () => startOperation(action, about, probe, true),
    staleTime: Infinity,
    gcTime: 0,
  });
  const counting = useQuery(operationQuery(dry.data?.id ?? null));
  const running = useQuery(operationQuery(startedId));
  const isCounted = counting.data !== undefined && !isRunning(counting.data);
  const matched = counting.data?.matched ?? 0;
  const operation = running.data;
  const isOver = operation !== undefined && !isRunning(operation);

  async function attempt(what: () => Promise<void>) {
    setBusy(true);
    setError(null);
    try {
      await what();
    } catch (thrown) {
      setError(thrown);
    } finally {
      setBusy(false);
    }
  }

  const start = () =>
    attempt(async () => {
      const started = await startOperation(action, boundByCount(about, dry.data), how, false);
      setStartedId(started.id);
      onDone?.();
    });
  const stop = () =>
    attempt(async () => {
      if (startedId !== null) await stopOperation(startedId);
    });

  function close() {
    if (startedId !== null) onDone?.();
    onClose();
  }

  const words = BULK_ACTIONS[action];
  const jobs = isCounted
    ? formatPlural(matched, "job")
    : target.kind === "selected"
      ? "selected jobs"
      : "matching jobs";
  return (
    <Dialog
      isOpen
      onClose={close}
      title={startedId === null ? `${words.verb} ${isCounted ? jobs : "jobs"}?` : `${words.verb} jobs`}
      description={startedId === null && target.kind === "matching" ? target.words : undefined}
      actions={
        startedId === null ? (
          <>
            <Button onClick={onClose}>Back</Button>
            <Button
              variant={words.isDangerous ? "danger" : "primary"}
              isBusy={isBusy}
              disabled={(isCounted && matched === 0) || dry.data === undefined || isIncomplete(action, how)}
              onClick={() => void start()}
            >
              {words.verb} {jobs}
            </Button>
          </>
        ) : isOver ? (
          <Button variant="primary" onClick={close}>
            Close
          </Button>
        ) : (
          <>
            <Button onClick={() => void stop()} isBusy={isBusy || operation?.state === "STOPPING"}>
              Stop
            </Button>
            <Button onClick={close}>Continue in background</Button>
          </>
        )
      }
    >
      {startedId === null ? (
        <div className="flex flex-col gap-3">
          <p role="status" className="tabular-nums">
            {isCounted
              ? matchSummary(target, matched)
              : `Counting: ${formatCount(matched)} so far, of at most ${formatCount(counting.data?.expected ?? dry.data?.expected ?? 0)}.`}{" "}
            {words.meaning}
          </p>
          {target.kind === "selected" && <SelectedJobs ids={target.ids} />}
          <OptionFields action={action} isMany={matched > 1} how={how} onChange={setHow} />
        </div>
      ) : isOver ? (
        <OperationResult action={action} operation={operation} />
      ) : (
        operation && <OperationProgress action={action} operation={operation} matched={isCounted ? matched : null} />
      )}
      <ErrorMessage error={error ?? dry.error ?? counting.error ?? running.error} />
    </Dialog>
  );
}

/** The target without jobs that arrived after the count: no more jobs are changed than the dialog announces. */
function boundByCount(about: OperationTarget, counted: Operation | undefined): OperationTarget {
  if (!("where" in about) || counted === undefined) return about;
  return { where: { ...about.where, until: about.where.until ?? counted.created_at } };
}

/** The number of target jobs that the action applies to. */
function matchSummary(target: DialogTarget, matched: number): string {
  if (target.kind === "matching") {
    return matched === 0 ? "No jobs match." : `${formatPlural(matched, "job")} ${matched === 1 ? "matches" : "match"}.`;
  }
  const chosen = target.ids.length;
  if (matched === chosen) return "";
  return matched === 0
    ? "None of the selected jobs can be changed: they no longer exist or are in another state."
    : `Applies to ${formatCount(matched)} of ${formatCount(chosen)} selected jobs: the others no longer exist or are in another state.`;
}

/** Number of IDs listed; the rest is counted. */
const MAX_LISTED = 50;

function SelectedJobs({ ids }: { ids: readonly string[] }) {
  return (
    <ul
      aria-label="Selected jobs"
      className="max-h-40 overflow-y-auto rounded-md bg-sunken px-3 py-2 font-mono text-xs"
      tabIndex={0}
    >
      {ids.slice(0, MAX_LISTED).map((id) => (
        <li key={id} className="break-all">
          {id}
        </li>
      ))}
      {ids.length > MAX_LISTED && <li className="text-muted">and {formatCount(ids.length - MAX_LISTED)} more</li>}
    </ul>
  );
}

/** True for an update without any change. */
function isIncomplete(action: BulkAction, how: OperationOptions): boolean {
  return action === "update" && how.priority === undefined && how.delay === undefined;
}

const PRIORITY_OPTIONS = [
  { value: "", label: "unchanged" },
  ...PRIORITIES.map(({ value, label }) => ({
    value: String(value),
    label: `${label} (${String(value).replace("-", "−")})`,
  })),
];

interface OptionFieldsProps {
  action: BulkAction;
  isMany: boolean;
  how: OperationOptions;
  onChange: (how: OperationOptions) => void;
}

function OptionFields({ action, isMany, how, onChange }: OptionFieldsProps) {
  const number = (value: string) => (value === "" || Number.isNaN(Number(value)) ? undefined : Number(value));
  if (action === "update") {
    return (
      <div className="grid gap-3 sm:grid-cols-2">
        <SelectField
          label="Priority"
          value={how.priority === undefined ? "" : String(how.priority)}
          options={PRIORITY_OPTIONS}
          onChange={(value) => onChange({ ...how, priority: number(value) })}
        />
        <TextField
          label="Start in (seconds from now)"
          type="number"
          min={0}
          placeholder="unchanged"
          value={how.delay === undefined ? "" : String(how.delay)}
          onChange={(value) => onChange({ ...how, delay: number(value) })}
        />
      </div>
    );
  }
  if (action === "cancel") {
    return (
      <TextField
        label="Reason"
        hint="Optional. Stored with each job."
        value={how.reason ?? ""}
        maxLength={1000}
        onChange={(reason) => onChange({ ...how, reason })}
      />
    );
  }
  if (action === "redrive" && isMany) {
    return (
      <TextField
        label="Maximum rate (jobs per second)"
        hint="Limits the load on downstream services. Empty: no limit."
        type="number"
        min={0.01}
        step="any"
        value={how.per_second === undefined ? "" : String(how.per_second)}
        onChange={(value) => onChange({ ...how, per_second: number(value) })}
      />
    );
  }
  return null;
}

function ErrorMessage({ error }: { error: unknown }) {
  if (error === null || error === undefined) return null;
  return (
    <p role="alert" className="mt-2 text-failed">
      {error instanceof Error ? error.message : "The request failed"}
    </p>
  );
}
