import { X } from "lucide-react";
import { useId, useState } from "react";

import type { Job } from "@/api/job-list";
import { JobStateBadge } from "@/components/badges";
import { IconButton } from "@/components/buttons";
import { CheckField, TextField } from "@/components/form-fields";
import type { Dependency } from "@/lib/new-job-draft";

interface DependencyPickerProps {
  dependencies: readonly Dependency[];
  onChange: (dependencies: readonly Dependency[]) => void;
  /** The search text. */
  typed: string;
  onType: (typed: string) => void;
  found: readonly Job[];
  isSearching: boolean;
  error?: string | null;
}

/** Selects the jobs that must end before the new job starts. */
export function DependencyPicker(props: DependencyPickerProps) {
  const { dependencies, onChange, typed, onType, found, isSearching, error } = props;
  const listId = useId();
  const [active, setActive] = useState(0);
  const choices = found.filter((job) => !dependencies.some((dependency) => dependency.job === job.jobId)).slice(0, 8);
  const isOpen = typed.trim() !== "";

  function add(id: string) {
    if (!dependencies.some((dependency) => dependency.job === id))
      onChange([...dependencies, { job: id, may_fail: false }]);
    onType("");
    setActive(0);
  }

  return (
    <div className="flex flex-col gap-2">
      {dependencies.map((dependency) => (
        <div key={dependency.job} className="flex flex-wrap items-center gap-x-3 rounded-md bg-sunken py-1 pr-1 pl-3">
          <span className="min-w-0 flex-1 font-mono text-xs break-all">{dependency.job}</span>
          <CheckField
            label="may fail"
            isChecked={dependency.may_fail}
            onChange={(may_fail) =>
              onChange(dependencies.map((one) => (one.job === dependency.job ? { ...one, may_fail } : one)))
            }
          />
          <IconButton
            label={`Remove dependency ${dependency.job}`}
            className="size-6"
            onClick={() => onChange(dependencies.filter((one) => one.job !== dependency.job))}
          >
            <X className="size-3.5" />
          </IconButton>
        </div>
      ))}
      <TextField
        label="Start after these jobs have completed"
        hint={error ? undefined : "Search by ID, task, or any text in the record."}
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
          const selected = choices[active];
          if (event.key === "ArrowDown") setActive(Math.min(active + 1, choices.length - 1));
          else if (event.key === "ArrowUp") setActive(Math.max(active - 1, 0));
          else if (event.key === "Enter" && isOpen) add(selected?.jobId ?? typed.trim());
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
            <JobStateBadge state={job.status} />
            <span className="min-w-0 flex-1 truncate font-mono text-xs">{job.jobId}</span>
            <span className="shrink-0 text-xs text-muted">{job.type}</span>
          </li>
        ))}
        {choices.length === 0 && (
          <li role="option" aria-selected={false} className="px-2 py-1.5 text-xs text-muted">
            {isSearching ? "Searching…" : "No jobs found. Press Enter to use the ID as typed."}
          </li>
        )}
      </ul>
    </div>
  );
}
