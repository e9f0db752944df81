/** A form generated from the JSON Schema of a task. Empty optional fields are not sent. */

import { Plus, X } from "lucide-react";
import type { ReactNode } from "react";

import { Button, IconButton } from "@/components/buttons";
import { SelectField, TextArea, TextField } from "@/components/form-fields";
import type { FieldErrors } from "@/lib/form-field-errors";
import type { Field, FieldType } from "@/lib/json-schema-fields";
import {
  EMPTY_OBJECT,
  isJsonNumber,
  getMember,
  jsonNumber,
  jsonString,
  tryParseJson,
  withMember,
  writeJson,
  type Json,
} from "@/lib/lossless-json";

interface JsonSchemaFormProps {
  fields: readonly Field[];
  value: Json;
  onChange: (value: Json) => void;
  errors: FieldErrors;
  /** Path of these fields in the request: "data", "data.address". */
  path: string;
}

export function JsonSchemaForm({ fields, value, onChange, errors, path }: JsonSchemaFormProps) {
  return (
    <div className="flex flex-col gap-3">
      {fields.map((field) => (
        <TypedField
          key={field.name}
          type={field.type}
          label={field.isRequired ? field.name : `${field.name} (optional)`}
          hint={hintOf(field)}
          isRequired={field.isRequired}
          path={`${path}.${field.name}`}
          errors={errors}
          value={getMember(value, field.name)}
          onChange={(changed) => onChange(withMember(value, field.name, changed))}
        />
      ))}
    </div>
  );
}

function hintOf(field: Field): ReactNode {
  const preset = field.defaultValue === null ? "" : `Default: ${writeJson(field.defaultValue)}.`;
  return [field.description, preset].filter(Boolean).join(" ") || undefined;
}

interface TypedFieldProps {
  type: FieldType;
  label: string;
  hint?: ReactNode;
  isRequired: boolean;
  path: string;
  errors: FieldErrors;
  value: Json | undefined;
  onChange: (value: Json | undefined) => void;
}

function TypedField(props: TypedFieldProps) {
  const { type, label, hint, isRequired, path, errors, value, onChange } = props;
  const common = { label, hint, error: errors[path] ?? null };
  /** An empty optional field is not sent; an empty required string is sent as "". */
  const change = (typed: string, read: (typed: string) => Json) =>
    onChange(typed === "" && !(isRequired && type.kind === "text") ? undefined : read(typed));
  switch (type.kind) {
    case "text":
      return (
        <TextField
          {...common}
          type={type.format === "date" ? "date" : "text"}
          placeholder={type.format === "date-time" ? "2026-12-24T18:00:00Z" : undefined}
          value={toInputText(value)}
          onChange={(typed) => change(typed, jsonString)}
        />
      );
    case "number":
      return (
        <TextField
          {...common}
          inputMode="decimal"
          autoComplete="off"
          value={toInputText(value)}
          // A text that is not a number is sent as it is; the server's error names the expected type.
          onChange={(typed) =>
            change(typed, (digits) => (isJsonNumber(digits) ? jsonNumber(digits) : jsonString(digits)))
          }
        />
      );
    case "boolean":
      return (
        <OptionSelect
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
      return <OptionSelect {...common} options={type.options} value={value} onChange={onChange} />;
    case "list":
      return <ListField {...props} type={type} />;
    case "object":
      return (
        <Group label={label} error={errors[path]}>
          <JsonSchemaForm
            fields={type.fields}
            value={value ?? EMPTY_OBJECT}
            onChange={onChange}
            errors={errors}
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
          value={toJsonText(value)}
          onChange={(typed) => change(typed, (source) => tryParseJson(source) ?? jsonString(source))}
        />
      );
  }
}

function toInputText(value: Json | undefined): string {
  if (value === undefined || value.kind === "null") return "";
  if (value.kind === "string") return value.value;
  return writeJson(value);
}

/** A string that is not JSON is still being typed. */
function toJsonText(value: Json | undefined): string {
  if (value === undefined) return "";
  return value.kind === "string" && tryParseJson(value.value) === null ? value.value : writeJson(value, 2);
}

interface OptionSelectProps {
  label: string;
  hint?: ReactNode;
  error: string | null;
  options: readonly Json[];
  value: Json | undefined;
  onChange: (value: Json | undefined) => void;
}

function OptionSelect({ label, hint, error, options, value, onChange }: OptionSelectProps) {
  const words = (option: Json) => (option.kind === "string" ? option.value : writeJson(option));
  const selected = value === undefined ? -1 : options.findIndex((option) => writeJson(option) === writeJson(value));
  return (
    <SelectField
      label={label}
      hint={hint}
      error={error}
      value={String(selected)}
      options={[
        { value: "-1", label: "–" },
        ...options.map((option, index) => ({ value: String(index), label: words(option) })),
      ]}
      onChange={(index) => onChange(options[Number(index)])}
    />
  );
}

function ListField({
  type,
  label,
  path,
  errors,
  value,
  onChange,
}: TypedFieldProps & { type: Extract<FieldType, { kind: "list" }> }) {
  const items = value?.kind === "array" ? value.items : [];
  const change = (changed: readonly Json[]) => onChange({ kind: "array", items: changed });
  return (
    <Group label={label} error={errors[path]}>
      <div className="flex flex-col gap-2">
        {items.map((item, index) => (
          <div key={index} className="flex items-end gap-1">
            <div className="min-w-0 flex-1">
              <TypedField
                type={type.item}
                label={`${label} ${index + 1}`}
                isRequired
                path={`${path}.${index}`}
                errors={errors}
                value={item}
                onChange={(changed) =>
                  change(items.map((one, at) => (at === index ? (changed ?? jsonString("")) : one)))
                }
              />
            </div>
            <IconButton
              label={`Remove ${label} ${index + 1}`}
              onClick={() => change(items.filter((_, at) => at !== index))}
            >
              <X className="size-4" />
            </IconButton>
          </div>
        ))}
        <Button className="self-start" onClick={() => change([...items, emptyValue(type.item)])}>
          <Plus aria-hidden className="size-3.5" />
          Add to {label.replace(" (optional)", "")}
        </Button>
      </div>
    </Group>
  );
}

function emptyValue(shape: FieldType): Json {
  if (shape.kind === "object") return EMPTY_OBJECT;
  return shape.kind === "list" ? { kind: "array", items: [] } : jsonString("");
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
