import { TextField } from "@/components/form-fields";
import type { CheckedWorkerLimits, WorkerLimitsDraft } from "@/lib/worker-limits";

interface WorkerLimitFieldsProps {
  draft: WorkerLimitsDraft;
  checked: CheckedWorkerLimits;
  onChange: (draft: WorkerLimitsDraft) => void;
}

/** The least and the greatest number of workers. */
export function WorkerLimitFields({ draft, checked, onChange }: WorkerLimitFieldsProps) {
  const number = { type: "number", step: 1, autoComplete: "off" };
  return (
    <div className="grid grid-cols-2 gap-3">
      <TextField
        {...number}
        label="Min workers"
        min={0}
        value={draft.min}
        onChange={(min) => onChange({ ...draft, min })}
        error={checked.minError}
      />
      <TextField
        {...number}
        label="Max workers"
        min={1}
        value={draft.max}
        onChange={(max) => onChange({ ...draft, max })}
        error={checked.maxError}
      />
    </div>
  );
}
