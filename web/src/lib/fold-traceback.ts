/** Splits a Python traceback into the user's own frames and folded library frames. */

export interface Frame {
  readonly file: string;
  readonly line: number;
  readonly name: string;
  /** The lines of the frame as they were printed, with the source and its markers. */
  readonly text: string;
}

export type TracebackPart =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "own"; readonly frame: Frame }
  | { readonly kind: "library"; readonly frames: readonly Frame[] };

/** After the bars of exception groups. */
const FRAME = /^[\s|+-]*File "(.+)", line (\d+)(?:, in (.+))?$/;
const LIBRARY =
  /[\\/](?:site-packages|dist-packages|lib[\\/]python[\d.]*|rota[\\/](?:worker|core|store))[\\/]|^<frozen /i;

export function isLibrary(file: string): boolean {
  return LIBRARY.test(file);
}

/** The indentation of a line, including the bars of exception groups. */
function indentOf(line: string): number {
  return line.length - line.replace(/^[\s|]*/, "").length;
}

/** The parts of a traceback, in order. If all frames belong to libraries, none is folded. */
export function foldTraceback(traceback: string): TracebackPart[] {
  const parts: TracebackPart[] = [];
  const lines = traceback.replace(/\n+$/, "").split("\n");
  for (let at = 0; at < lines.length;) {
    const line = lines[at] as string;
    const found = FRAME.exec(line);
    let end = at + 1;
    if (found === null) {
      addText(parts, line);
    } else {
      // The source lines are indented deeper than the frame's own line.
      while (end < lines.length && !FRAME.test(lines[end] as string) && indentOf(lines[end] as string) > indentOf(line))
        end += 1;
      const [, file, number, name] = found as unknown as [string, string, string, string | undefined];
      addFrame(parts, { file, line: Number(number), name: name ?? "", text: lines.slice(at, end).join("\n") });
    }
    at = end;
  }
  if (parts.some(({ kind }) => kind === "own")) return parts;
  return parts.flatMap((part) =>
    part.kind === "library" ? part.frames.map((frame) => ({ kind: "own" as const, frame })) : [part],
  );
}

function addText(parts: TracebackPart[], line: string): void {
  const last = parts.at(-1);
  if (last?.kind === "text") parts[parts.length - 1] = { kind: "text", text: `${last.text}\n${line}` };
  else parts.push({ kind: "text", text: line });
}

function addFrame(parts: TracebackPart[], frame: Frame): void {
  const last = parts.at(-1);
  if (!isLibrary(frame.file)) parts.push({ kind: "own", frame });
  else if (last?.kind === "library") parts[parts.length - 1] = { kind: "library", frames: [...last.frames, frame] };
  else parts.push({ kind: "library", frames: [frame] });
}
