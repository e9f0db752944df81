/** A form made from what a task asks for. What is left empty and is not required is not sent. */

import { Plus, X } from "lucide-react";
import type { ReactNode } from "react";

import { Button, IconButton } from "@/components/button";
import { SelectField, TextArea, TextField } from "@/components/field";
import {
  EMPTY_OBJECT,
  isNumber,
  member,
  number,
  text,
  tryParseJson,
  withMember,
  writeJson,
  type Json,
} from "@/lib/json";
import type { Complaints } from "@/lib/misplaced";
import type { Field, Shape } from "@/lib/schema";

interface SchemaFormProps {
  fields: readonly Field[];
  value: Json;
  onChange: (value: Json) => void;
  complaints: Complaints;
  /** Where these fields stand in the job: "data", "data.address". */
  path: string;
}

export function SchemaForm({ fields, value, onChange, complaints, path }: SchemaFormProps) {
  return (
    <div className="flex flex-col gap-3">
      {fields.map((field) => (
        <ShapeField
          key={field.name}
          shape={field.shape}
          label={field.isRequired ? field.name : `${field.name} (optional)`}
          hint={hintOf(field)}
          isRequired={field.isRequired}
          path={`${path}.${field.name}`}
          complaints={complaints}
          value={member(value, field.name)}
          onChange={(changed) => onChange(withMember(value, field.name, changed))}
        />
      ))}
    </div>
  );
}

function hintOf(field: Field): ReactNode {
  const preset = field.preset === null ? "" : `Unless told otherwise ${writeJson(field.preset)}.`;
  return [field.description, preset].filter(Boolean).join(" ") || undefined;
}

interface ShapeFieldProps {
  shape: Shape;
  label: string;
  hint?: ReactNode;
  isRequired: boolean;
  path: string;
  complaints: Complaints;
  value: Json | undefined;
  onChange: (value: Json | undefined) => void;
}

function ShapeField(props: ShapeFieldProps) {
  const { shape, label, hint, isRequired, path, complaints, value, onChange } = props;
  const common = { label, hint, error: complaints[path] ?? null };
  /** Emptied, an optional field is not sent; a required text is an empty one. */
  const change = (typed: string, read: (typed: string) => Json) =>
    onChange(typed === "" && !(isRequired && shape.kind === "text") ? undefined : read(typed));
  switch (shape.kind) {
    case "text":
      return (
        <TextField
          {...common}
          type={shape.format === "date" ? "date" : "text"}
          placeholder={shape.format === "date-time" ? "2026-12-24T18:00:00Z" : undefined}
          value={shown(value)}
          onChange={(typed) => change(typed, text)}
        />
      );
    case "number":
      return (
        <TextField
          {...common}
          inputMode="decimal"
          autoComplete="off"
          value={shown(value)}
          // What is no number is sent as it is, and the server says what it should be.
          onChange={(typed) => change(typed, (digits) => (isNumber(digits) ? number(digits) : text(digits)))}
        />
      );
    case "boolean":
      return (
        <Chooser
          {...common}
          options={[
            { kind: "boolean", value: true },
            { kind: "boolean", value: false },
          ]}
          value={value}
          onChange={onChange}
        />
      );
    case "choice":
      return <Chooser {...common} options={shape.options} value={value} onChange={onChange} />;
    case "list":
      return <ListField {...props} shape={shape} />;
    case "object":
      return (
        <Group label={label} error={complaints[path]}>
          <SchemaForm
            fields={shape.fields}
            value={value ?? EMPTY_OBJECT}
            onChange={onChange}
            complaints={complaints}
            path={path}
          />
        </Group>
      );
    case "json":
      return (
        <TextArea
          {...common}
          hint={hint ?? "JSON"}
          spellCheck={false}
          value={shownJson(value)}
          onChange={(typed) => change(typed, (source) => tryParseJson(source) ?? text(source))}
        />
      );
  }
}

function shown(value: Json | undefined): string {
  if (value === undefined || value.kind === "null") return "";
  if (value.kind === "string") return value.value;
  return writeJson(value);
}

/** A text that is no JSON is one that somebody is still typing. */
function shownJson(value: Json | undefined): string {
  if (value === undefined) return "";
  return value.kind === "string" && tryParseJson(value.value) === null ? value.value : writeJson(value, 2);
}

interface ChooserProps {
  label: string;
  hint?: ReactNode;
  error: string | null;
  options: readonly Json[];
  value: Json | undefined;
  onChange: (value: Json | undefined) => void;
}

function Chooser({ label, hint, error, options, value, onChange }: ChooserProps) {
  const words = (option: Json) => (option.kind === "string" ? option.value : writeJson(option));
  const chosen = value === undefined ? -1 : options.findIndex((option) => writeJson(option) === writeJson(value));
  return (
    <SelectField
      label={label}
      hint={hint}
      error={error}
      value={String(chosen)}
      options={[
        { value: "-1", label: "–" },
        ...options.map((option, place) => ({ value: String(place), label: words(option) })),
      ]}
      onChange={(place) => onChange(options[Number(place)])}
    />
  );
}

function ListField({
  shape,
  label,
  path,
  complaints,
  value,
  onChange,
}: ShapeFieldProps & { shape: Extract<Shape, { kind: "list" }> }) {
  const items = value?.kind === "array" ? value.items : [];
  const change = (changed: readonly Json[]) => onChange({ kind: "array", items: changed });
  return (
    <Group label={label} error={complaints[path]}>
      <div className="flex flex-col gap-2">
        {items.map((item, place) => (
          <div key={place} className="flex items-end gap-1">
            <div className="min-w-0 flex-1">
              <ShapeField
                shape={shape.item}
                label={`${label} ${place + 1}`}
                isRequired
                path={`${path}.${place}`}
                complaints={complaints}
                value={item}
                onChange={(changed) => change(items.map((one, at) => (at === place ? (changed ?? text("")) : one)))}
              />
            </div>
            <IconButton
              label={`Remove ${label} ${place + 1}`}
              onClick={() => change(items.filter((_, at) => at !== place))}
            >
              <X className="size-4" />
            </IconButton>
          </div>
        ))}
        <Button className="self-start" onClick={() => change([...items, emptyOf(shape.item)])}>
          <Plus aria-hidden className="size-3.5" />
          Add to {label.replace(" (optional)", "")}
        </Button>
      </div>
    </Group>
  );
}

function emptyOf(shape: Shape): Json {
  if (shape.kind === "object") return EMPTY_OBJECT;
  return shape.kind === "list" ? { kind: "array", items: [] } : text("");
}

function Group({ label, error, children }: { label: string; error?: string; children: ReactNode }) {
  return (
    <fieldset className="min-w-0 rounded-md border px-3 pt-1 pb-3">
      <legend className="px-1 text-xs font-medium text-muted">{label}</legend>
      {children}
      {error !== undefined && (
        <p role="alert" className="mt-2 text-xs text-failed">
          {error}
        </p>
      )}
    </fieldset>
  );
}
