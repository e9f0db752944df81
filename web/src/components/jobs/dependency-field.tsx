import { X } from "lucide-react";
import { useId, useState } from "react";

import type { Job } from "@/api/jobs";
import { StateBadge } from "@/components/badge";
import { IconButton } from "@/components/button";
import { CheckField, TextField } from "@/components/field";

export interface Parent {
  readonly job: string;
  readonly may_fail: boolean;
}

interface DependencyFieldProps {
  parents: readonly Parent[];
  onChange: (parents: readonly Parent[]) => void;
  /** What is looked for. */
  typed: string;
  onType: (typed: string) => void;
  found: readonly Job[];
  isLooking: boolean;
  error?: string | null;
}

/** Jobs that must end first, chosen from those that there are. */
export function DependencyField(props: DependencyFieldProps) {
  const { parents, onChange, typed, onType, found, isLooking, error } = props;
  const listId = useId();
  const [active, setActive] = useState(0);
  const choices = found.filter((job) => !parents.some((parent) => parent.job === job.jobId)).slice(0, 8);
  const isOpen = typed.trim() !== "";

  function add(id: string) {
    if (!parents.some((parent) => parent.job === id)) onChange([...parents, { job: id, may_fail: false }]);
    onType("");
    setActive(0);
  }

  return (
    <div className="flex flex-col gap-2">
      {parents.map((parent) => (
        <div key={parent.job} className="flex flex-wrap items-center gap-x-3 rounded-md bg-sunken py-1 pr-1 pl-3">
          <span className="min-w-0 flex-1 font-mono text-xs break-all">{parent.job}</span>
          <CheckField
            label="may fail"
            isChecked={parent.may_fail}
            onChange={(may_fail) =>
              onChange(parents.map((one) => (one.job === parent.job ? { ...one, may_fail } : one)))
            }
          />
          <IconButton
            label={`Do not wait for ${parent.job}`}
            className="size-6"
            onClick={() => onChange(parents.filter((one) => one.job !== parent.job))}
          >
            <X className="size-3.5" />
          </IconButton>
        </div>
      ))}
      <TextField
        label="Start after these jobs have completed"
        hint={error ? undefined : "Look for an id, a task, or a text of the record."}
        error={error}
        value={typed}
        role="combobox"
        aria-expanded={isOpen}
        aria-controls={listId}
        aria-autocomplete="list"
        aria-activedescendant={isOpen && choices[active] ? `${listId}-${active}` : undefined}
        autoComplete="off"
        spellCheck={false}
        onChange={(value) => {
          onType(value);
          setActive(0);
        }}
        onKeyDown={(event) => {
          const chosen = choices[active];
          if (event.key === "ArrowDown") setActive(Math.min(active + 1, choices.length - 1));
          else if (event.key === "ArrowUp") setActive(Math.max(active - 1, 0));
          else if (event.key === "Enter" && isOpen) add(chosen?.jobId ?? typed.trim());
          else if (event.key === "Escape") onType("");
          else return;
          event.preventDefault();
        }}
      />
      <ul
        id={listId}
        role="listbox"
        aria-label="Jobs found"
        hidden={!isOpen}
        className="max-h-64 overflow-y-auto rounded-md border bg-raised p-1"
      >
        {choices.map((job, place) => (
          <li
            key={`${job.jobId}@${job.run}`}
            id={`${listId}-${place}`}
            role="option"
            aria-selected={place === active}
            className={`flex cursor-pointer items-center gap-2 rounded px-2 py-1.5 hover:bg-sunken ${place === active ? "bg-sunken" : ""}`}
            onClick={() => add(job.jobId)}
          >
            <StateBadge state={job.status} />
            <span className="min-w-0 flex-1 truncate font-mono text-xs">{job.jobId}</span>
            <span className="shrink-0 text-xs text-muted">{job.type}</span>
          </li>
        ))}
        {choices.length === 0 && (
          <li role="option" aria-selected={false} className="px-2 py-1.5 text-xs text-muted">
            {isLooking ? "Looking" : "Nothing found. Enter takes the id as it is written."}
          </li>
        )}
      </ul>
    </div>
  );
}
