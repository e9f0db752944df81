import { lazy, Suspense, useId } from "react";

import { Loading } from "@/components/looks";

const CodeEditor = lazy(() => import("@/components/json/code-editor"));

export interface JsonEditorProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  /** What the server said about it. What is no JSON is marked by the editor itself. */
  error?: string | null;
  hint?: string;
}

/** JSON for writing. The editor is large, so it is loaded when it is first needed. */
export function JsonEditor(props: JsonEditorProps) {
  const noteId = useId();
  return (
    <div className="flex min-w-0 flex-col gap-1">
      <span className="text-xs font-medium text-muted">{props.label}</span>
      <Suspense fallback={<Loading lines={3} />}>
        <CodeEditor {...props} noteId={noteId} />
      </Suspense>
      {props.error ? (
        <p id={noteId} role="alert" className="text-xs text-failed">
          {props.error}
        </p>
      ) : (
        props.hint !== undefined && (
          <p id={noteId} className="text-xs text-muted">
            {props.hint}
          </p>
        )
      )}
    </div>
  );
}
