import { classNames } from "@/lib/class-names";

/** A progress bar, 0 to 100. */
export function ProgressBar({ value, label, className }: { value: number; label: string; className?: string }) {
  const width = Math.min(100, Math.max(0, value));
  return (
    <div
      role="progressbar"
      aria-label={label}
      aria-valuenow={Math.round(width)}
      aria-valuemin={0}
      aria-valuemax={100}
      className={classNames(
        "h-1.5 overflow-hidden rounded-full bg-sunken contrast-more:border forced-colors:border",
        className,
      )}
    >
      <div
        className="h-full rounded-full bg-accent forced-color-adjust-none transition-[width] duration-300"
        style={{ width: `${width}%` }}
      />
    </div>
  );
}
