/** One thing done to many jobs: how many first, then how far, then what came of it. */

import { useQuery } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";

import {
  isRunning,
  operationQuery,
  startOperation,
  stopOperation,
  type About,
  type Action,
  type How,
  type Where,
} from "@/api/operations";
import { Button } from "@/components/button";
import { Dialog } from "@/components/dialog";
import { SelectField, TextField } from "@/components/field";
import { OperationProgress, OperationReport } from "@/components/operations/report";
import { ACTIONS } from "@/components/operations/words";
import { count, plural } from "@/lib/numbers";

/** To which jobs. */
export type Target =
  /** All that match. */
  | { readonly kind: "matching"; readonly where: Where; readonly words: ReactNode }
  /** Those that were chosen one by one. */
  | { readonly kind: "chosen"; readonly ids: readonly string[] };

interface OperationDialogProps {
  action: Action;
  target: Target;
  onClose: () => void;
  /** Something was done: what is shown may be old. */
  onDone?: () => void;
}

export function OperationDialog({ action, target, onClose, onDone }: OperationDialogProps) {
  const [how, setHow] = useState<How>({});
  const [startedId, setStartedId] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const about: About = target.kind === "matching" ? { where: target.where } : { jobs: [...target.ids] };
  const probe: How = action === "update" ? { priority: 0 } : {};
  const dry = useQuery({
    queryKey: ["operation-count", action, about],
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
      const started = await startOperation(action, about, how, false);
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

  const words = ACTIONS[action];
  const jobs = isCounted ? plural(matched, "job") : target.kind === "chosen" ? "those chosen" : "all that match";
  return (
    <Dialog
      isOpen
      onClose={close}
      title={startedId === null ? `${words.verb} ${isCounted ? jobs : "jobs"}?` : `${words.verb} jobs`}
      description={startedId === null && target.kind === "matching" ? target.words : undefined}
      actions={
        startedId === null ? (
          <>
            <Button onClick={onClose}>Keep</Button>
            <Button
              look={words.isDangerous ? "danger" : "primary"}
              isBusy={isBusy}
              disabled={(isCounted && matched === 0) || dry.data === undefined || isIncomplete(action, how)}
              onClick={() => void start()}
            >
              {words.verb} {jobs}
            </Button>
          </>
        ) : isOver ? (
          <Button look="primary" onClick={close}>
            Close
          </Button>
        ) : (
          <>
            <Button onClick={() => void stop()} isBusy={isBusy || operation?.state === "STOPPING"}>
              Stop
            </Button>
            <Button onClick={close}>Go on in the background</Button>
          </>
        )
      }
    >
      {startedId === null ? (
        <div className="flex flex-col gap-3">
          <p role="status" className="figures">
            {isCounted
              ? found(target, matched)
              : `Counting: ${count(matched)} so far, of at most ${count(counting.data?.expected ?? dry.data?.expected ?? 0)}.`}{" "}
            {words.meaning}
          </p>
          {target.kind === "chosen" && <Chosen ids={target.ids} />}
          <HowFields action={action} isMany={matched > 1} how={how} onChange={setHow} />
        </div>
      ) : isOver ? (
        <OperationReport action={action} operation={operation} />
      ) : (
        operation && <OperationProgress action={action} operation={operation} matched={isCounted ? matched : null} />
      )}
      <Trouble error={error ?? dry.error ?? counting.error ?? running.error} />
    </Dialog>
  );
}

/** How many of the jobs that are meant it can be done to. */
function found(target: Target, matched: number): string {
  if (target.kind === "matching") {
    return matched === 0
      ? "No job matches now."
      : `${plural(matched, "job")} ${matched === 1 ? "matches" : "match"} now.`;
  }
  const chosen = target.ids.length;
  if (matched === chosen) return "";
  return matched === 0
    ? "It can be done to none of them now: they are gone, or in another state."
    : `It can be done to ${count(matched)} of ${count(chosen)} now: the others are gone, or in another state.`;
}

/** The ids that are listed; of more, the number will do. */
const LISTED = 50;

function Chosen({ ids }: { ids: readonly string[] }) {
  return (
    <ul
      aria-label="Chosen jobs"
      className="max-h-40 overflow-y-auto rounded-md bg-sunken px-3 py-2 font-mono text-xs"
      tabIndex={0}
    >
      {ids.slice(0, LISTED).map((id) => (
        <li key={id} className="break-all">
          {id}
        </li>
      ))}
      {ids.length > LISTED && <li className="text-muted">and {count(ids.length - LISTED)} more</li>}
    </ul>
  );
}

/** To change nothing is no change. */
function isIncomplete(action: Action, how: How): boolean {
  return action === "update" && how.priority === undefined && how.delay === undefined;
}

const PRIORITIES = [
  { value: "", label: "as it is" },
  { value: "-15", label: "critical (−15)" },
  { value: "-10", label: "high (−10)" },
  { value: "-5", label: "medium (−5)" },
  { value: "0", label: "normal (0)" },
  { value: "10", label: "low (10)" },
] as const;

interface HowFieldsProps {
  action: Action;
  isMany: boolean;
  how: How;
  onChange: (how: How) => void;
}

function HowFields({ action, isMany, how, onChange }: HowFieldsProps) {
  const number = (value: string) => (value === "" || Number.isNaN(Number(value)) ? undefined : Number(value));
  if (action === "update") {
    return (
      <div className="grid gap-3 sm:grid-cols-2">
        <SelectField
          label="Priority"
          value={(how.priority === undefined ? "" : String(how.priority)) as (typeof PRIORITIES)[number]["value"]}
          options={PRIORITIES}
          onChange={(value) => onChange({ ...how, priority: number(value) })}
        />
        <TextField
          label="Start in, seconds from now"
          type="number"
          min={0}
          placeholder="as it is"
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
        hint="Shown with each job. May be left empty."
        value={how.reason ?? ""}
        maxLength={1000}
        onChange={(reason) => onChange({ ...how, reason })}
      />
    );
  }
  if (action === "redrive" && isMany) {
    return (
      <TextField
        label="At most, jobs per second"
        hint="So that what failed them is not overrun. Empty: as fast as it goes."
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

function Trouble({ error }: { error: unknown }) {
  if (error === null || error === undefined) return null;
  return (
    <p role="alert" className="mt-2 text-failed">
      {error instanceof Error ? error.message : "That did not work"}
    </p>
  );
}
