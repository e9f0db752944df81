import { useEffect, useRef } from "react";

import { classes } from "@/lib/classes";
import { count, short } from "@/lib/numbers";
import { JOB_STATES, JOB_TONES, type JobState } from "@/lib/states";

interface StateFiltersProps {
  state: JobState | undefined;
  /** How many are in each state; null where other conditions would make these numbers a lie. */
  counts: Readonly<Record<JobState, number>> | null;
  onChange: (state: JobState | undefined) => void;
}

/** The states, each with how many there are: one press shows them. */
export function StateFilters({ state, counts, onChange }: StateFiltersProps) {
  const total = counts === null ? null : JOB_STATES.reduce((sum, one) => sum + counts[one], 0);
  return (
    <div role="group" aria-label="States" className="-mx-4 flex gap-1 overflow-x-auto px-4 pb-0.5 md:mx-0 md:px-0">
      <StateButton label="all" total={total} isChosen={state === undefined} onPress={() => onChange(undefined)} />
      {JOB_STATES.map((one) => (
        <StateButton
          key={one}
          label={JOB_TONES[one].label}
          mark={JOB_TONES[one].mark}
          title={JOB_TONES[one].meaning}
          total={counts?.[one] ?? null}
          isChosen={state === one}
          onPress={() => onChange(state === one ? undefined : one)}
        />
      ))}
    </div>
  );
}

interface StateButtonProps {
  label: string;
  mark?: string;
  title?: string;
  total: number | null;
  isChosen: boolean;
  onPress: () => void;
}

function StateButton({ label, mark, title, total, isChosen, onPress }: StateButtonProps) {
  const button = useRef<HTMLButtonElement>(null);
  const isCounted = total !== null;
  // On a phone not all of them fit: the one that is chosen is to be seen, also once the numbers have made them wider.
  useEffect(() => {
    if (isChosen) button.current?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [isChosen, isCounted]);
  return (
    <button
      ref={button}
      type="button"
      aria-pressed={isChosen}
      title={title}
      onClick={onPress}
      className={classes(
        "flex h-8 shrink-0 items-center gap-1.5 rounded-md border px-2.5 text-[13px]",
        isChosen ? "border-accent bg-accent-soft font-medium" : "border-line bg-surface text-muted hover:text-text",
      )}
    >
      {mark !== undefined && (
        <span aria-hidden className={classes("size-2 rounded-full forced-color-adjust-none", mark)} />
      )}
      {label}
      {total !== null && (
        <span className="figures min-w-4 text-right text-text" title={count(total)}>
          {short(total)}
        </span>
      )}
    </button>
  );
}
