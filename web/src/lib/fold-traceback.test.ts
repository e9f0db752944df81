import { describe, expect, it } from "vitest";

import { foldTraceback } from "@/lib/fold-traceback";

const PLAIN = `Traceback (most recent call last):
  File "/app/.venv/lib/python3.12/site-packages/rota/worker/executor.py", line 88, in run
    return await call()
           ^^^^^^^^^^^^
  File "/usr/lib/python3.12/asyncio/tasks.py", line 314, in step
    coro.send(None)
  File "/app/mail.py", line 7, in welcome
    raise ConnectionError("hung up")
ConnectionError: hung up
`;

describe("foldTraceback", () => {
  it("puts the frames of libraries together and keeps those of the reader", () => {
    const parts = foldTraceback(PLAIN);
    expect(parts.map(({ kind }) => kind)).toEqual(["text", "library", "own", "text"]);
    expect(parts[1]).toMatchObject({ frames: [{ name: "run" }, { name: "step" }] });
    expect(parts[2]).toMatchObject({ frame: { file: "/app/mail.py", line: 7, name: "welcome" } });
    expect(parts[3]).toEqual({ kind: "text", text: "ConnectionError: hung up" });
  });

  it("loses no line", () => {
    const lines = foldTraceback(PLAIN).flatMap((part) =>
      part.kind === "text"
        ? [part.text]
        : part.kind === "own"
          ? [part.frame.text]
          : part.frames.map(({ text }) => text),
    );
    expect(`${lines.join("\n")}\n`).toBe(PLAIN);
  });

  it("reads the causes between, and the bars of exception groups", () => {
    const parts = foldTraceback(`  + Exception Group Traceback (most recent call last):
  |   File "/app/a.py", line 1, in all
  |     await group()
  | ExceptionGroup: two (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/app/b.py", line 2, in one
    |     raise ValueError(1)
    | ValueError: 1
    +------------------------------------`);
    expect(parts.map((part) => (part.kind === "own" ? part.frame.file : part.kind))).toEqual([
      "text",
      "/app/a.py",
      "text",
      "/app/b.py",
      "text",
    ]);
  });

  it("puts nothing aside where there is nothing else", () => {
    const parts = foldTraceback(
      '  File "/usr/lib/python3.12/json/decoder.py", line 3, in decode\n    boom\nValueError: no',
    );
    expect(parts.map(({ kind }) => kind)).toEqual(["own", "text"]);
  });

  it("takes any text as it is", () => {
    expect(foldTraceback("<script>alert(1)</script>")).toEqual([{ kind: "text", text: "<script>alert(1)</script>" }]);
  });
});
