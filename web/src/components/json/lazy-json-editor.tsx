import { lazy, Suspense, useId } from "react";

import { LoadingState } from "@/components/loading-empty-error-states";

const CodeMirrorJsonEditor = lazy(() => import("@/components/json/codemirror-json-editor"));

export interface JsonEditorProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  /** The server's error. Invalid JSON is marked by the editor itself. */
  error?: string | null;
  hint?: string;
}

/** A JSON editor. CodeMirror is large, so it is loaded when it is first needed. */
export function LazyJsonEditor(props: JsonEditorProps) {
  const noteId = useId();
  return (
    <div className="flex min-w-0 flex-col gap-1">
      <span className="text-xs font-medium text-muted">{props.label}</span>
      <Suspense fallback={<LoadingState lines={3} />}>
        <CodeMirrorJsonEditor {...props} noteId={noteId} />
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
