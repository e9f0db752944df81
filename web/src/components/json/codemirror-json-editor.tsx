/** The JSON editor: CodeMirror with the colours of the theme and the page's CSP nonce. */

import { history, historyKeymap, standardKeymap } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { linter, lintKeymap, type Diagnostic } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "react";

import type { JsonEditorProps } from "@/components/json/lazy-json-editor";
import { classNames } from "@/lib/class-names";
import { cspNonce } from "@/lib/csp-nonce";
import { JsonError, parseJson } from "@/lib/lossless-json";

const HIGHLIGHT_STYLE = HighlightStyle.define([
  { tag: tags.propertyName, color: "var(--accent)" },
  { tag: tags.string, color: "var(--completed)" },
  { tag: tags.number, color: "var(--pending)" },
  { tag: [tags.bool, tags.null], color: "var(--scheduled)" },
]);

const EDITOR_THEME = EditorView.theme({
  "&": { fontSize: "12px", backgroundColor: "var(--surface)", color: "var(--text)", maxHeight: "60vh" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--font-mono)", lineHeight: "20px", minHeight: "8rem" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--sunken)", color: "var(--muted)", border: "none" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--accent-soft)",
  },
  ".cm-tooltip": {
    backgroundColor: "var(--raised)",
    color: "var(--text)",
    border: "1px solid var(--line)",
    borderRadius: "6px",
  },
});

function lintJson(view: EditorView): Diagnostic[] {
  const source = view.state.doc.toString();
  if (source.trim() === "") return [];
  try {
    parseJson(source);
    return [];
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    const from = Math.min(error.at, source.length);
    return [{ from, to: Math.min(from + 1, source.length), severity: "error", message: error.message }];
  }
}

export default function CodeMirrorJsonEditor({
  label,
  value,
  onChange,
  error,
  noteId,
}: JsonEditorProps & { noteId: string }) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const latest = useRef({ value, onChange });
  useEffect(() => {
    latest.current = { value, onChange };
  });

  useEffect(() => {
    if (place.current === null) return;
    const made = new EditorView({
      parent: place.current,
      state: EditorState.create({
        doc: latest.current.value,
        extensions: [
          EditorView.cspNonce.of(cspNonce),
          lineNumbers(),
          history(),
          drawSelection(),
          json(),
          linter(lintJson, { delay: 200 }),
          syntaxHighlighting(HIGHLIGHT_STYLE),
          EDITOR_THEME,
          EditorView.lineWrapping,
          // Tab is not bound: keyboard users must be able to leave the editor.
          keymap.of([...standardKeymap, ...historyKeymap, ...lintKeymap]),
          EditorView.contentAttributes.of({ "aria-label": label, "aria-describedby": noteId }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) latest.current.onChange(update.state.doc.toString());
          }),
        ],
      }),
    });
    view.current = made;
    return () => {
      made.destroy();
      view.current = null;
    };
  }, [label, noteId]);

  useEffect(() => {
    // The value changed from outside: another task was selected, or the text was formatted.
    const shown = view.current;
    if (shown && shown.state.doc.toString() !== value) {
      shown.dispatch({ changes: { from: 0, to: shown.state.doc.length, insert: value } });
    }
  }, [value]);

  return (
    <div
      ref={place}
      className={classNames(
        "overflow-hidden rounded-md border focus-within:outline-2 focus-within:outline-offset-2 focus-within:outline-focus",
        error ? "border-failed" : "border-line-strong/60",
      )}
    />
  );
}
