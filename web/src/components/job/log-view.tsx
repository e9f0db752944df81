/** What a handler logged, as it comes: it follows its end until the reader scrolls up. */

import { ArrowDownToLine, Download } from "lucide-react";
import { useEffect, useRef, useState, type ReactNode } from "react";

import type { LogLine } from "@/api/job";
import { Button, IconButton } from "@/components/button";
import { SelectField, TextField } from "@/components/field";
import { withoutAnsi } from "@/lib/ansi";
import { classes } from "@/lib/classes";
import { download } from "@/lib/download";
import { count } from "@/lib/numbers";
import { clock, exact } from "@/lib/time";
import { useZone } from "@/lib/zone";

/** Levels that can be asked for, and what each lets through. */
const LEVELS = ["debug", "info", "warning", "error"] as const;
type Level = (typeof LEVELS)[number];

const MARKS: Readonly<Record<string, string>> = {
  warning: "text-blocked",
  error: "text-failed",
  critical: "text-failed",
};
/** So near to its end it is followed. */
const NEAR_PX = 24;

function rank(level: string): number {
  const found = LEVELS.indexOf(level.toLowerCase() as Level);
  return found < 0 ? LEVELS.length : found;
}

/** The lines that a reader asked for. */
export function matching(lines: readonly LogLine[], level: Level, text: string): readonly LogLine[] {
  const wanted = text.trim().toLowerCase();
  return lines.filter(
    (line) => rank(line.level) >= rank(level) && (wanted === "" || line.text.toLowerCase().includes(wanted)),
  );
}

interface LogViewProps {
  lines: readonly LogLine[];
  /** More may come. */
  isRunning: boolean;
  fileName: string;
  className?: string;
}

export function LogView({ lines, isRunning, fileName, className = "h-80" }: LogViewProps) {
  const [level, setLevel] = useState<Level>("debug");
  const [text, setText] = useState("");
  const [isFollowing, setFollowing] = useState(true);
  const box = useRef<HTMLDivElement>(null);
  const zone = useZone();
  const shown = matching(lines, level, text);

  useEffect(() => {
    if (isFollowing && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [isFollowing, shown.length]);

  function save() {
    const body = lines.map((line) => `${exact(line.at, "utc")} ${line.level.toUpperCase()} ${withoutAnsi(line.text)}`);
    download(fileName, `${body.join("\n")}\n`, "text/plain");
  }

  return (
    <div className="flex min-w-0 flex-col">
      <div className="flex flex-wrap items-center gap-2 border-b px-4 py-2">
        <TextField
          label="Search the log"
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
        <span role="status" className="figures text-xs text-muted">
          {shown.length === lines.length
            ? `${count(lines.length)} lines`
            : `${count(shown.length)} of ${count(lines.length)} lines`}
        </span>
        <span className="ml-auto flex items-center gap-1">
          <Button look="quiet" aria-pressed={isFollowing} onClick={() => setFollowing(!isFollowing)}>
            <ArrowDownToLine aria-hidden className={classes("size-3.5", isFollowing && "text-accent")} />
            {isFollowing ? "Following" : "Follow"}
          </Button>
          <IconButton label="Download the log" onClick={save} disabled={lines.length === 0}>
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
        className={classes("overflow-y-auto overscroll-contain px-4 py-2 font-mono text-xs leading-5", className)}
        onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
          const isAtEnd = scrollHeight - scrollTop - clientHeight < NEAR_PX;
          if (isAtEnd !== isFollowing) setFollowing(isAtEnd);
        }}
      >
        {shown.length === 0 && <Nothing isRunning={isRunning} isFiltered={lines.length > 0} />}
        {shown.map((line, place) => (
          <div key={place} className="grid grid-cols-[auto_3.5rem_1fr] gap-x-2 max-sm:grid-cols-[auto_1fr]">
            <time dateTime={line.at} title={exact(line.at, zone)} className="figures text-muted">
              {clock(line.at, zone)}
            </time>
            <span className={classes("truncate", MARKS[line.level.toLowerCase()] ?? "text-muted")}>{line.level}</span>
            <span className="min-w-0 break-words whitespace-pre-wrap max-sm:col-span-2">{withoutAnsi(line.text)}</span>
          </div>
        ))}
      </div>
    </div>
  );
}

function Nothing({ isRunning, isFiltered }: { isRunning: boolean; isFiltered: boolean }): ReactNode {
  if (isFiltered) return <p className="py-2 font-sans text-muted">No line matches.</p>;
  return (
    <p className="py-2 font-sans text-muted">
      {isRunning ? "Nothing logged yet: lines appear here as they come." : "Nothing was logged."} A handler writes here
      with <code className="font-mono">ctx.log("…")</code>.
    </p>
  );
}
