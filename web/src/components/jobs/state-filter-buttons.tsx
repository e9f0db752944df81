import { useEffect, useRef } from "react";

import { classNames } from "@/lib/class-names";
import { formatCount, formatShort } from "@/lib/format-number";
import { JOB_STATES, JOB_STATE_STYLES, type JobState } from "@/lib/job-and-workflow-states";

interface StateFilterButtonsProps {
  state: JobState | undefined;
  /** Number of jobs in each state; null if other filters apply, which the counts do not consider. */
  counts: Readonly<Record<JobState, number>> | null;
  onChange: (state: JobState | undefined) => void;
}

/** One button per state, with the number of jobs; filters the list. */
export function StateFilterButtons({ state, counts, onChange }: StateFilterButtonsProps) {
  const total = counts === null ? null : JOB_STATES.reduce((sum, one) => sum + counts[one], 0);
  return (
    <div role="group" aria-label="States" className="-mx-4 flex gap-1 overflow-x-auto px-4 pb-0.5 md:mx-0 md:px-0">
      <StateButton label="all" total={total} isSelected={state === undefined} onPress={() => onChange(undefined)} />
      {JOB_STATES.map((one) => (
        <StateButton
          key={one}
          label={JOB_STATE_STYLES[one].label}
          mark={JOB_STATE_STYLES[one].mark}
          title={JOB_STATE_STYLES[one].meaning}
          total={counts?.[one] ?? null}
          isSelected={state === one}
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
  isSelected: boolean;
  onPress: () => void;
}

function StateButton({ label, mark, title, total, isSelected, onPress }: StateButtonProps) {
  const button = useRef<HTMLButtonElement>(null);
  const isCounted = total !== null;
  // On a phone not all of them fit: the selected one is scrolled into view, again once the counts have made them wider.
  useEffect(() => {
    if (isSelected) button.current?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [isSelected, isCounted]);
  return (
    <button
      ref={button}
      type="button"
      aria-pressed={isSelected}
      title={title}
      onClick={onPress}
      className={classNames(
        "flex h-8 shrink-0 items-center gap-1.5 rounded-md border px-2.5 text-[13px]",
        isSelected ? "border-accent bg-accent-soft font-medium" : "border-line bg-surface text-muted hover:text-text",
      )}
    >
      {mark !== undefined && (
        <span aria-hidden className={classNames("size-2 rounded-full forced-color-adjust-none", mark)} />
      )}
      {label}
      {total !== null && (
        <span className="tabular-nums min-w-4 text-right text-text" title={formatCount(total)}>
          {formatShort(total)}
        </span>
      )}
    </button>
  );
}
