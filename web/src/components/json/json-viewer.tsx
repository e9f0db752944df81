/** A read-only JSON tree: branches fold, numbers keep every digit, large values are rendered on request. */

import { ChevronRight, Download } from "lucide-react";
import { useMemo, useState, type ReactNode } from "react";

import { Button, IconButton } from "@/components/buttons";
import { CopyButton } from "@/components/copy-button";
import { classNames } from "@/lib/class-names";
import { downloadFile } from "@/lib/download-file";
import { formatBytes, formatCount } from "@/lib/format-number";
import { tryParseJson, writeJson, type Json } from "@/lib/lossless-json";

/** Larger values (in characters) are rendered on request only. */
const MAX_UNASKED = 100_000;
/** Children rendered at a time; a button shows more. */
const CHUNK = 100;
/** Longer strings are cut; a click shows them in full. */
const LONG_TEXT = 300;

interface JsonViewerProps {
  /** The JSON text as the server sent it. Other text is shown unchanged. */
  source: string;
  /** The accessible name: "Payload". */
  label: string;
  /** Name of the downloaded file. */
  fileName?: string;
  /** Levels that are expanded at first. */
  openLevels?: number;
}

export function JsonViewer({ source, label, fileName = "value.json", openLevels = 2 }: JsonViewerProps) {
  const [isShown, setShown] = useState(source.length <= MAX_UNASKED);
  const value = useMemo(() => (isShown ? tryParseJson(source) : null), [source, isShown]);
  return (
    <section aria-label={label} className="relative min-w-0 rounded-md bg-sunken">
      <div className="absolute top-1 right-1 flex gap-0.5 rounded bg-sunken">
        <CopyButton text={value === null ? source : writeJson(value, 2)} label={`Copy ${label.toLowerCase()}`} />
        <IconButton
          label={`Download ${label.toLowerCase()}`}
          className="size-6"
          onClick={() => downloadFile(fileName, source)}
        >
          <Download className="size-3.5" />
        </IconButton>
      </div>
      {isShown ? (
        <div
          tabIndex={0}
          role="region"
          aria-label={`${label}, value`}
          className="max-h-[60vh] overflow-auto p-3 pr-16 font-mono text-xs leading-5"
        >
          {value === null ? (
            <pre className="break-words whitespace-pre-wrap">{source}</pre>
          ) : (
            <Node value={value} openLevels={openLevels} isLast />
          )}
        </div>
      ) : (
        <div className="flex flex-wrap items-center gap-3 p-3 pr-16">
          <span className="text-muted">{formatBytes(source.length)}: rendering may take a moment.</span>
          <Button onClick={() => setShown(true)}>Show</Button>
        </div>
      )}
    </section>
  );
}

interface NodeProps {
  value: Json;
  name?: ReactNode;
  openLevels: number;
  isLast: boolean;
}

function Node({ value, name, openLevels, isLast }: NodeProps) {
  const comma = isLast ? "" : ",";
  if (value.kind === "array" && value.items.length > 0) {
    const children = value.items.map((item, place) => ({ key: String(place), name: undefined, value: item }));
    return <Branch name={name} brackets="[]" what="item" children={children} openLevels={openLevels} comma={comma} />;
  }
  if (value.kind === "object" && value.entries.length > 0) {
    const children = value.entries.map(([key, one], place) => ({ key: `${place}-${key}`, name: key, value: one }));
    return <Branch name={name} brackets="{}" what="key" children={children} openLevels={openLevels} comma={comma} />;
  }
  return (
    <div className="pl-4 break-words whitespace-pre-wrap">
      {name}
      <Leaf value={value} />
      {comma}
    </div>
  );
}

interface BranchProps {
  name: ReactNode;
  brackets: "[]" | "{}";
  what: string;
  children: readonly { key: string; name: string | undefined; value: Json }[];
  openLevels: number;
  comma: string;
}

function Branch({ name, brackets, what, children, openLevels, comma }: BranchProps) {
  const [isOpen, setOpen] = useState(openLevels > 0);
  const [shown, setShown] = useState(CHUNK);
  const size = `${formatCount(children.length)} ${what}${children.length === 1 ? "" : "s"}`;
  return (
    <div>
      <button
        type="button"
        aria-expanded={isOpen}
        aria-label={isOpen ? `Collapse ${size}` : `Expand ${size}`}
        onClick={() => setOpen(!isOpen)}
        className="inline-flex min-h-5 items-center rounded text-left hover:bg-line"
      >
        <ChevronRight aria-hidden className={classNames("size-4 shrink-0 text-muted", isOpen && "rotate-90")} />
        {name}
        {brackets.charAt(0)}
        {!isOpen && (
          <span className="text-muted">
            {" "}
            {size} {brackets.charAt(1)}
            {comma}
          </span>
        )}
      </button>
      {isOpen && (
        <>
          <div className="ml-2 border-l border-line pl-2">
            {children.slice(0, shown).map((child, place) => (
              <Node
                key={child.key}
                value={child.value}
                name={child.name === undefined ? undefined : <Name name={child.name} />}
                openLevels={openLevels - 1}
                isLast={place === children.length - 1}
              />
            ))}
            {children.length > shown && (
              <button
                type="button"
                className="ml-4 min-h-6 text-accent underline"
                onClick={() => setShown(shown + CHUNK * 10)}
              >
                {formatCount(children.length - shown)} more
              </button>
            )}
          </div>
          <div className="pl-4">
            {brackets.charAt(1)}
            {comma}
          </div>
        </>
      )}
    </div>
  );
}

function Name({ name }: { name: string }) {
  return (
    <>
      <span className="text-accent">{JSON.stringify(name)}</span>
      <span className="text-muted">: </span>
    </>
  );
}

function Leaf({ value }: { value: Json }) {
  if (value.kind === "string") return <TextLeaf value={value.value} />;
  const look = value.kind === "number" ? "text-pending" : value.kind === "boolean" ? "text-scheduled" : "text-muted";
  return <span className={look}>{writeJson(value)}</span>;
}

function TextLeaf({ value }: { value: string }) {
  const [isWhole, setWhole] = useState(value.length <= LONG_TEXT);
  const shown = isWhole ? value : `${value.slice(0, LONG_TEXT)}…`;
  return (
    <span className="text-completed">
      {JSON.stringify(shown)}
      {!isWhole && (
        <button type="button" className="ml-2 min-h-6 text-accent underline" onClick={() => setWhole(true)}>
          show all {formatCount(value.length)} characters
        </button>
      )}
    </span>
  );
}
