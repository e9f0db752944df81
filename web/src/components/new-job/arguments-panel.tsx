import { useState } from "react";

import type { TaskInfo } from "@/api/tasks";
import { LazyJsonEditor } from "@/components/json/lazy-json-editor";
import { JsonSchemaForm } from "@/components/new-job/json-schema-form";
import { Panel } from "@/components/panel";
import { SegmentedControl } from "@/components/segmented-control";
import type { FieldErrors } from "@/lib/form-field-errors";
import { schemaFields } from "@/lib/json-schema-fields";
import { EMPTY_OBJECT, tryParseJson, writeJson, type Json } from "@/lib/lossless-json";
import { firstDataError, toNamedArguments } from "@/lib/new-job-draft";

interface ArgumentsPanelProps {
  task: TaskInfo | undefined;
  /** The typed JSON text. */
  data: string;
  errors: FieldErrors;
  onChange: (data: string) => void;
}

/** The arguments: as a form where the task has a schema, otherwise as JSON. Positional arguments are an array. */
export function ArgumentsPanel({ task, data, errors, onChange }: ArgumentsPanelProps) {
  const [prefersJson, setPrefersJson] = useState(false);
  const fields = schemaFields(task?.json_schema ?? null);
  const value: Json | null = data.trim() === "" ? EMPTY_OBJECT : toNamedArguments(tryParseJson(data), task);
  const isForm = fields !== null && value?.kind === "object" && !prefersJson;
  return (
    <Panel
      title="Arguments"
      actions={
        fields !== null && (
          <SegmentedControl
            label="Input mode"
            value={isForm ? "form" : "json"}
            options={[
              { value: "form", label: "Form" },
              { value: "json", label: "JSON" },
            ]}
            onChange={(mode) => {
              if (mode === "json" && value !== null) onChange(writeJson(value, 2));
              setPrefersJson(mode === "json");
            }}
          />
        )
      }
    >
      {!isForm && (
        <LazyJsonEditor
          label="An object of named arguments, or an array of positional arguments"
          value={data}
          error={firstDataError(errors)}
          hint={value === null ? "Not valid JSON yet." : undefined}
          onChange={onChange}
        />
      )}
      {isForm && fields.length === 0 && <p className="text-muted">This task takes no arguments.</p>}
      {isForm && fields.length > 0 && (
        <JsonSchemaForm
          fields={fields}
          value={value}
          path="data"
          errors={errors}
          onChange={(changed) => onChange(writeJson(changed))}
        />
      )}
      {isForm && errors.data !== undefined && (
        <p role="alert" className="mt-2 text-xs text-failed">
          {errors.data}
        </p>
      )}
    </Panel>
  );
}
