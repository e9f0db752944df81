import { classNames } from "@/lib/class-names";

/** Selects one of a few options, side by side. The selection belongs in the URL. */
export function SegmentedControl<V extends string>({
  label,
  value,
  options,
  onChange,
}: {
  label: string;
  value: V;
  options: readonly { value: V; label: string }[];
  onChange: (value: V) => void;
}) {
  return (
    <div role="group" aria-label={label} className="flex rounded-md border border-line-strong/50 bg-surface p-0.5">
      {options.map((option) => (
        <button
          key={option.value}
          type="button"
          aria-pressed={option.value === value}
          onClick={() => onChange(option.value)}
          className={classNames(
            "h-6.5 rounded px-2.5 text-[13px]",
            option.value === value ? "bg-accent-soft font-medium text-text" : "text-muted hover:text-text",
          )}
        >
          {option.label}
        </button>
      ))}
    </div>
  );
}
