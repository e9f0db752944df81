/** One thing done to many jobs: how many first, then how far, then what came of it. */

import { useQuery } from "@tanstack/react-query";
import { useRef, useState, type ReactNode } from "react";

import {
  doToJob,
  isRunning,
  operationQuery,
  startOperation,
  stopOperation,
  type Action,
  type How,
  type Operation,
  type Where,
} from "@/api/operations";
import { Button } from "@/components/button";
import { Dialog } from "@/components/dialog";
import { SelectField, TextField } from "@/components/field";
import { OperationProgress, OperationReport, type Progress } from "@/components/operations/report";
import { ACTIONS } from "@/components/operations/words";
import { count, plural } from "@/lib/numbers";

/** To which jobs. */
export type Target =
  /** All that match: the server does it, also when this page is closed. */
  | { readonly kind: "matching"; readonly where: Where; readonly words: ReactNode }
  /** Those that were chosen one by one: this page does it. */
  | { readonly kind: "chosen"; readonly ids: readonly string[] };

interface OperationDialogProps {
  action: Action;
  target: Target;
  onClose: () => void;
  /** Something was done: what is shown may be old. */
  onDone?: () => void;
}

export function OperationDialog({ action, target, onClose, onDone }: OperationDialogProps) {
  return target.kind === "matching" ? (
    <MatchingDialog action={action} target={target} onClose={onClose} onDone={onDone} />
  ) : (
    <ChosenDialog action={action} ids={target.ids} onClose={onClose} onDone={onDone} />
  );
}

function progressOf(operation: Operation, total: number): Progress {
  const { done, failed, failures } = operation;
  return { done, failed, failures, total: total > 0 ? total : operation.expected };
}

function MatchingDialog({
  action,
  target,
  onClose,
  onDone,
}: Omit<OperationDialogProps, "target"> & { target: Extract<Target, { kind: "matching" }> }) {
  const [how, setHow] = useState<How>({});
  const [startedId, setStartedId] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const probe: How = action === "update" ? { priority: 0 } : {};
  const dry = useQuery({
    queryKey: ["operation-count", action, target.where],
    queryFn: () => startOperation(action, target.where, probe, true),
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
      const started = await startOperation(action, target.where, how, false);
      setStartedId(started.id);
      onDone?.();
    });
  const stop = () =>
    attempt(async () => {
      if (startedId !== null) await stopOperation(startedId);
    });

  const words = ACTIONS[action];
  const jobs = isCounted ? plural(matched, "job") : "all that match";
  return (
    <Dialog
      isOpen
      onClose={() => {
        onDone?.();
        onClose();
      }}
      title={startedId === null ? `${words.verb} ${isCounted ? jobs : "jobs"}?` : `${words.verb} jobs`}
      description={startedId === null ? target.words : undefined}
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
          <Button look="primary" onClick={onClose}>
            Close
          </Button>
        ) : (
          <>
            <Button onClick={() => void stop()} isBusy={isBusy || operation?.state === "STOPPING"}>
              Stop
            </Button>
            <Button onClick={onClose}>Go on in the background</Button>
          </>
        )
      }
    >
      {startedId === null ? (
        <div className="flex flex-col gap-3">
          <p role="status" className="figures">
            {isCounted
              ? matched === 0
                ? "No job matches now."
                : `${plural(matched, "job")} ${matched === 1 ? "matches" : "match"} now.`
              : `Counting: ${count(matched)} so far, of at most ${count(counting.data?.expected ?? dry.data?.expected ?? 0)}.`}{" "}
            {words.meaning}
          </p>
          <HowFields action={action} isMatching how={how} onChange={setHow} />
        </div>
      ) : operation === undefined || !isOver ? (
        operation && <OperationProgress action={action} progress={progressOf(operation, isCounted ? matched : 0)} />
      ) : (
        <OperationReport
          action={action}
          progress={progressOf(operation, matched)}
          isStopped={operation.state === "STOPPED"}
        />
      )}
      <Trouble error={error ?? dry.error ?? counting.error ?? running.error} />
    </Dialog>
  );
}

/** So many at a time. */
const AT_ONCE = 4;

function ChosenDialog({
  action,
  ids,
  onClose,
  onDone,
}: Omit<OperationDialogProps, "target"> & { ids: readonly string[] }) {
  const [how, setHow] = useState<How>({});
  const [progress, setProgress] = useState<Progress | null>(null);
  const [isOver, setOver] = useState(false);
  const isStopped = useRef(false);
  const [wasStopped, setWasStopped] = useState(false);
  const words = ACTIONS[action];

  async function run() {
    const waiting = [...ids];
    const state = { done: 0, failed: 0, total: ids.length, failures: [] as { jobId: string; message: string }[] };
    setProgress({ ...state });
    const work = async () => {
      for (let id = waiting.shift(); id !== undefined && !isStopped.current; id = waiting.shift()) {
        try {
          await doToJob(action, id, how);
          state.done += 1;
        } catch (error) {
          state.failed += 1;
          state.failures = [...state.failures, { jobId: id, message: error instanceof Error ? error.message : "" }];
        }
        setProgress({ ...state });
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    setOver(true);
    onDone?.();
  }

  function stop() {
    isStopped.current = true;
    setWasStopped(true);
  }

  return (
    <Dialog
      isOpen
      onClose={() => {
        stop();
        onClose();
      }}
      title={progress === null ? `${words.verb} ${plural(ids.length, "job")}?` : `${words.verb} jobs`}
      description={progress === null ? words.meaning : undefined}
      actions={
        progress === null ? (
          <>
            <Button onClick={onClose}>Keep</Button>
            <Button
              look={words.isDangerous ? "danger" : "primary"}
              disabled={isIncomplete(action, how)}
              onClick={() => void run()}
            >
              {words.verb} {plural(ids.length, "job")}
            </Button>
          </>
        ) : isOver ? (
          <Button look="primary" onClick={onClose}>
            Close
          </Button>
        ) : (
          <Button onClick={stop} isBusy={wasStopped}>
            Stop
          </Button>
        )
      }
    >
      {progress === null ? (
        <div className="flex flex-col gap-3">
          <ul className="max-h-40 overflow-y-auto rounded-md bg-sunken px-3 py-2 font-mono text-xs" tabIndex={0}>
            {ids.slice(0, 50).map((id) => (
              <li key={id} className="break-all">
                {id}
              </li>
            ))}
            {ids.length > 50 && <li className="text-muted">and {count(ids.length - 50)} more</li>}
          </ul>
          <HowFields action={action} isMatching={false} how={how} onChange={setHow} />
        </div>
      ) : isOver ? (
        <OperationReport action={action} progress={progress} isStopped={wasStopped} />
      ) : (
        <OperationProgress action={action} progress={progress} />
      )}
    </Dialog>
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
  isMatching: boolean;
  how: How;
  onChange: (how: How) => void;
}

function HowFields({ action, isMatching, how, onChange }: HowFieldsProps) {
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
  if (action === "redrive" && isMatching) {
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
