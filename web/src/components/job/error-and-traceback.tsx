/** The error of an attempt: type, message, attributes and traceback, with library frames folded. */

import type { JobError } from "@/api/job-detail";
import { Badge } from "@/components/badges";
import { CopyButton } from "@/components/copy-button";
import { JsonViewer } from "@/components/json/json-viewer";
import { foldTraceback, type Frame, type TracebackPart } from "@/lib/fold-traceback";
import { formatPlural } from "@/lib/format-number";

export function ErrorWithTraceback({ error }: { error: JobError }) {
  return (
    <div className="flex flex-col gap-3">
      <div className="flex items-start justify-between gap-2">
        <div className="min-w-0">
          <p className="flex flex-wrap items-center gap-2">
            <span className="font-mono text-[13px] font-semibold break-all text-failed">{error.type}</span>
            <Badge title="Error kind">{error.kind}</Badge>
          </p>
          <p className="mt-1 break-words whitespace-pre-wrap">{error.message}</p>
        </div>
        <CopyButton text={error.traceback || `${error.type}: ${error.message}`} label="Copy error" />
      </div>
      {Object.keys(error.attributes).length > 0 && (
        <div className="flex flex-col gap-1">
          <h3 className="text-xs font-medium text-muted">Attributes</h3>
          <JsonViewer source={error.attributes_text} label="Attributes" fileName="attributes.json" />
        </div>
      )}
      {error.traceback !== "" && <Traceback text={error.traceback} />}
    </div>
  );
}

export function Traceback({ text }: { text: string }) {
  return (
    <div
      tabIndex={0}
      role="region"
      aria-label="Traceback"
      className="max-h-[28rem] overflow-auto rounded-md bg-sunken p-3 font-mono text-xs leading-5"
    >
      {foldTraceback(text).map((part, place) => (
        <Part key={place} part={part} />
      ))}
    </div>
  );
}

function Part({ part }: { part: TracebackPart }) {
  if (part.kind === "own") return <pre className="whitespace-pre-wrap">{part.frame.text}</pre>;
  if (part.kind === "text") return <pre className="whitespace-pre-wrap text-muted">{part.text}</pre>;
  return (
    <details>
      <summary className="min-h-6 w-fit rounded pr-1 text-muted hover:text-text">
        {formatPlural(part.frames.length, "frame")} of {libraries(part.frames)}
      </summary>
      <pre className="whitespace-pre-wrap text-muted">{part.frames.map((frame) => frame.text).join("\n")}</pre>
    </details>
  );
}

/** "rota, asyncio": the libraries of the folded frames. */
function libraries(frames: readonly Frame[]): string {
  const names = frames.map(({ file }) => {
    const found = /[\\/](?:site-packages|dist-packages|python[\d.]*)[\\/]([^\\/]+)/.exec(file)?.[1];
    return found?.replace(/\.py$/, "") ?? (/[\\/]rota[\\/]/.test(file) ? "rota" : "a library");
  });
  return [...new Set(names)].slice(0, 3).join(", ");
}
