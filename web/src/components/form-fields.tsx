/** Form fields with label, hint and error: text, text area, select, checkbox. */

import { useId, type ComponentProps, type ReactNode } from "react";

import { classNames } from "@/lib/class-names";

const INPUT =
  "h-8 w-full rounded-md border border-line-strong/60 bg-surface px-2.5 text-[13px] placeholder:text-muted aria-invalid:border-failed";

interface FieldProps {
  label: string;
  hint?: ReactNode;
  error?: string | null;
  /** The label is for screen readers only, where the context makes it clear. */
  isLabelHidden?: boolean;
  className?: string;
}

function LabelledField({
  id,
  label,
  hint,
  error,
  isLabelHidden,
  className,
  children,
}: FieldProps & { id: string; children: ReactNode }) {
  return (
    <div className={classNames("flex min-w-0 flex-col gap-1", className)}>
      <label htmlFor={id} className={isLabelHidden ? "sr-only" : "text-xs font-medium text-muted"}>
        {label}
      </label>
      {children}
      {error ? (
        <p id={`${id}-note`} role="alert" className="text-xs text-failed">
          {error}
        </p>
      ) : (
        hint !== undefined && (
          <p id={`${id}-note`} className="text-xs text-muted">
            {hint}
          </p>
        )
      )}
    </div>
  );
}

function describedBy(id: string, { hint, error }: FieldProps) {
  return {
    "aria-invalid": error ? true : undefined,
    "aria-describedby": error || hint !== undefined ? `${id}-note` : undefined,
  };
}

type TextFieldProps = FieldProps & { value: string; onChange: (value: string) => void } & Omit<
    ComponentProps<"input">,
    "value" | "onChange" | "className"
  >;

export function TextField({ label, hint, error, isLabelHidden, className, onChange, ...rest }: TextFieldProps) {
  const id = useId();
  const field = { label, hint, error, isLabelHidden, className };
  return (
    <LabelledField id={id} {...field}>
      <input
        id={id}
        className={INPUT}
        onChange={(event) => onChange(event.target.value)}
        {...describedBy(id, field)}
        {...rest}
      />
    </LabelledField>
  );
}

type TextAreaProps = FieldProps & { value: string; onChange: (value: string) => void } & Omit<
    ComponentProps<"textarea">,
    "value" | "onChange" | "className"
  >;

export function TextArea({ label, hint, error, isLabelHidden, className, onChange, ...rest }: TextAreaProps) {
  const id = useId();
  const field = { label, hint, error, isLabelHidden, className };
  return (
    <LabelledField id={id} {...field}>
      <textarea
        id={id}
        className={classNames(INPUT, "h-auto min-h-24 py-2 font-mono")}
        onChange={(event) => onChange(event.target.value)}
        {...describedBy(id, field)}
        {...rest}
      />
    </LabelledField>
  );
}

type SelectFieldProps<V extends string> = FieldProps & {
  value: V;
  onChange: (value: V) => void;
  options: readonly { value: V; label: string }[];
} & Omit<ComponentProps<"select">, "value" | "onChange" | "className">;

export function SelectField<V extends string>(props: SelectFieldProps<V>) {
  const { label, hint, error, isLabelHidden, className, onChange, options, ...rest } = props;
  const id = useId();
  const field = { label, hint, error, isLabelHidden, className };
  return (
    <LabelledField id={id} {...field}>
      <select
        id={id}
        className={INPUT}
        onChange={(event) => onChange(event.target.value as V)}
        {...describedBy(id, field)}
        {...rest}
      >
        {options.map((option) => (
          <option key={option.value} value={option.value}>
            {option.label}
          </option>
        ))}
      </select>
    </LabelledField>
  );
}

export function CheckField({
  label,
  isChecked,
  onChange,
  hint,
}: {
  label: string;
  isChecked: boolean;
  onChange: (isChecked: boolean) => void;
  hint?: ReactNode;
}) {
  const id = useId();
  return (
    <div className="flex items-start gap-2">
      <input
        id={id}
        type="checkbox"
        checked={isChecked}
        onChange={(event) => onChange(event.target.checked)}
        className="mt-0.5 size-4 accent-(--accent)"
        aria-describedby={hint === undefined ? undefined : `${id}-note`}
      />
      <div>
        <label htmlFor={id}>{label}</label>
        {hint !== undefined && (
          <p id={`${id}-note`} className="text-xs text-muted">
            {hint}
          </p>
        )}
      </div>
    </div>
  );
}
