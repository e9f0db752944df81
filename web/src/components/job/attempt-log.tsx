import type { LogLine } from "@/api/job-detail";
import { classNames } from "@/lib/class-names";
import { formatPlural } from "@/lib/format-number";
import { formatClock, formatExact } from "@/lib/format-time";
import { stripAnsi } from "@/lib/strip-ansi";
import { useTimeZone } from "@/lib/time-zone-setting";

/** Lines shown of an attempt: the latest. The log has all of them. */
const MAX_LINES = 200;

/** The log lines of one attempt, folded. */
export function AttemptLog({ attempt, lines }: { attempt: number; lines: readonly LogLine[] }) {
  const zone = useTimeZone();
  if (lines.length === 0) return null;
  return (
    <details>
      <summary className="w-fit rounded-sm py-0.5 text-xs text-muted hover:text-text">
        {formatPlural(lines.length, "log line")}
      </summary>
      <ol
        aria-label={`Log lines of attempt ${attempt}`}
        tabIndex={0}
        className="mt-1 max-h-60 overflow-y-auto rounded-md bg-sunken px-3 py-2 font-mono text-xs leading-5"
      >
        {lines.slice(-MAX_LINES).map((line, place) => (
          <li key={place} className="grid grid-cols-[auto_1fr] gap-x-3">
            <time dateTime={line.at} title={formatExact(line.at, zone)} className="tabular-nums text-muted">
              {formatClock(line.at, zone)}
            </time>
            <span
              className={classNames(
                "min-w-0 break-words whitespace-pre-wrap",
                /^(error|critical)$/i.test(line.level) && "text-failed",
              )}
            >
              {stripAnsi(line.text)}
            </span>
          </li>
        ))}
      </ol>
    </details>
  );
}
