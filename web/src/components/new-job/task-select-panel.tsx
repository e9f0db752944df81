/** Selects the task of a new job, and shows its description. */

import { useId } from "react";

import type { TaskInfo } from "@/api/tasks";
import { TextField } from "@/components/form-fields";
import { Panel } from "@/components/panel";

interface TaskSelectPanelProps {
  value: string;
  onChange: (task: string) => void;
  error: string | undefined;
  /** The task of that name, if a worker has announced it. */
  task: TaskInfo | undefined;
  /** Undefined while they are loading. */
  tasks: readonly TaskInfo[] | undefined;
}

export function TaskSelectPanel({ value, onChange, error, task, tasks }: TaskSelectPanelProps) {
  const listId = useId();
  const isUnknown = value !== "" && tasks !== undefined && task === undefined;
  const hint = isUnknown
    ? "No worker has announced this task: the job waits until one does."
    : "Type part of the task’s name.";
  return (
    <Panel>
      <TextField
        label="Task"
        list={listId}
        value={value}
        onChange={onChange}
        error={error}
        hint={task === undefined ? hint : `${task.doc || task.name} Queue ${task.queue}.`}
        placeholder="send_mail"
        autoComplete="off"
        spellCheck={false}
        autoFocus
        required
      />
      <datalist id={listId}>
        {tasks?.map(({ name, doc }) => (
          <option key={name} value={name}>
            {doc}
          </option>
        ))}
      </datalist>
    </Panel>
  );
}
