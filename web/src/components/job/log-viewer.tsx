/** The log lines of a job. Follows new lines until the user scrolls up. */

import { ArrowDownToLine, Download } from "lucide-react";
import { useEffect, useRef, useState, type ReactNode } from "react";

import type { LogLine } from "@/api/job-detail";
import { Button, IconButton } from "@/components/buttons";
import { SelectField, TextField } from "@/components/form-fields";
import { classNames } from "@/lib/class-names";
import { downloadFile } from "@/lib/download-file";
import { formatCount } from "@/lib/format-number";
import { formatClock, formatExact } from "@/lib/format-time";
import { stripAnsi } from "@/lib/strip-ansi";
import { useTimeZone } from "@/lib/time-zone-setting";

/** Levels of the filter; each includes the more severe ones. */
const LEVELS = ["debug", "info", "warning", "error"] as const;
type Level = (typeof LEVELS)[number];

const LEVEL_COLORS: Readonly<Record<string, string>> = {
  warning: "text-blocked",
  error: "text-failed",
  critical: "text-failed",
};
/** Distance to the end, in pixels, within which new lines are followed. */
const FOLLOW_WITHIN_PX = 24;

function rank(level: string): number {
  const found = LEVELS.indexOf(level.toLowerCase() as Level);
  return found < 0 ? LEVELS.length : found;
}

/** The lines that match the level and the text. */
export function filterLines(lines: readonly LogLine[], level: Level, text: string): readonly LogLine[] {
  const wanted = text.trim().toLowerCase();
  return lines.filter(
    (line) => rank(line.level) >= rank(level) && (wanted === "" || line.text.toLowerCase().includes(wanted)),
  );
}

interface LogViewerProps {
  lines: readonly LogLine[];
  /** The job is running: more lines may arrive. */
  isRunning: boolean;
  fileName: string;
  className?: string;
}

export function LogViewer({ lines, isRunning, fileName, className = "h-80" }: LogViewerProps) {
  const [level, setLevel] = useState<Level>("debug");
  const [text, setText] = useState("");
  const [isFollowing, setFollowing] = useState(true);
  const box = useRef<HTMLDivElement>(null);
  const zone = useTimeZone();
  const shown = filterLines(lines, level, text);

  useEffect(() => {
    if (isFollowing && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [isFollowing, shown.length]);

  function save() {
    const body = lines.map(
      (line) => `${formatExact(line.at, "utc")} ${line.level.toUpperCase()} ${stripAnsi(line.text)}`,
    );
    downloadFile(fileName, `${body.join("\n")}\n`, "text/plain");
  }

  return (
    <div className="flex min-w-0 flex-col">
      <div className="flex flex-wrap items-center gap-2 border-b px-4 py-2">
        <TextField
          label="Search log"
          isLabelHidden
          placeholder="Search"
          type="search"
          value={text}
          onChange={setText}
          className="grow basis-40 sm:grow-0 sm:basis-48"
        />
        <SelectField
          label="Level"
          isLabelHidden
          value={level}
          onChange={setLevel}
          options={LEVELS.map((one) => ({ value: one, label: one === "debug" ? "All levels" : `${one} and above` }))}
          className="basis-36"
        />
        <span role="status" className="tabular-nums text-xs text-muted">
          {shown.length === lines.length
            ? `${formatCount(lines.length)} lines`
            : `${formatCount(shown.length)} of ${formatCount(lines.length)} lines`}
        </span>
        <span className="ml-auto flex items-center gap-1">
          <Button variant="quiet" aria-pressed={isFollowing} onClick={() => setFollowing(!isFollowing)}>
            <ArrowDownToLine aria-hidden className={classNames("size-3.5", isFollowing && "text-accent")} />
            {isFollowing ? "Following" : "Follow"}
          </Button>
          <IconButton label="Download log" onClick={save} disabled={lines.length === 0}>
            <Download className="size-4" />
          </IconButton>
        </span>
      </div>
      <div
        ref={box}
        tabIndex={0}
        role="log"
        aria-label="Log"
        aria-live="off"
        className={classNames("overflow-y-auto overscroll-contain px-4 py-2 font-mono text-xs leading-5", className)}
        onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
          const isAtEnd = scrollHeight - scrollTop - clientHeight < FOLLOW_WITHIN_PX;
          if (isAtEnd !== isFollowing) setFollowing(isAtEnd);
        }}
      >
        {shown.length === 0 && <EmptyLog isRunning={isRunning} isFiltered={lines.length > 0} />}
        {shown.map((line, place) => (
          <div key={place} className="grid grid-cols-[auto_3.5rem_1fr] gap-x-2 max-sm:grid-cols-[auto_1fr]">
            <time dateTime={line.at} title={formatExact(line.at, zone)} className="tabular-nums text-muted">
              {formatClock(line.at, zone)}
            </time>
            <span className={classNames("truncate", LEVEL_COLORS[line.level.toLowerCase()] ?? "text-muted")}>
              {line.level}
            </span>
            <span className="min-w-0 break-words whitespace-pre-wrap max-sm:col-span-2">{stripAnsi(line.text)}</span>
          </div>
        ))}
      </div>
    </div>
  );
}

function EmptyLog({ isRunning, isFiltered }: { isRunning: boolean; isFiltered: boolean }): ReactNode {
  if (isFiltered) return <p className="py-2 font-sans text-muted">No matching lines.</p>;
  return (
    <p className="py-2 font-sans text-muted">
      {isRunning ? "Nothing logged yet." : "Nothing was logged."} Handlers write log lines with{" "}
      <code className="font-mono">ctx.log("…")</code>.
    </p>
  );
}
