/** Toast notifications. Announced politely; an error stays until it is closed. */

import { X } from "lucide-react";
import { createContext, useCallback, useContext, useMemo, useState, type ReactNode } from "react";

import { IconButton } from "@/components/buttons";
import { classNames } from "@/lib/class-names";

interface Toast {
  readonly id: number;
  readonly text: ReactNode;
  readonly isError: boolean;
}

interface ToastApi {
  /** The action succeeded. */
  success: (text: ReactNode) => void;
  /** The action failed. */
  error: (error: unknown) => void;
}

const ToastContext = createContext<ToastApi>({ success: () => undefined, error: () => undefined });
const VISIBLE_MS = 5000;
let lastId = 0;

export function ToastProvider({ children }: { children: ReactNode }) {
  const [toasts, setToasts] = useState<readonly Toast[]>([]);
  const close = useCallback((id: number) => setToasts((now) => now.filter((toast) => toast.id !== id)), []);
  const show = useCallback(
    (text: ReactNode, isError: boolean) => {
      const id = ++lastId;
      setToasts((now) => [...now.slice(-3), { id, text, isError }]);
      if (!isError) setTimeout(() => close(id), VISIBLE_MS);
    },
    [close],
  );
  const value = useMemo(
    () => ({
      success: (text: ReactNode) => show(text, false),
      error: (error: unknown) => show(error instanceof Error ? error.message : String(error), true),
    }),
    [show],
  );
  return (
    <ToastContext value={value}>
      {children}
      <div
        role="region"
        aria-label="Notifications"
        aria-live="polite"
        className="pointer-events-none fixed right-4 bottom-4 left-4 z-50 flex flex-col items-end gap-2"
      >
        {toasts.map((toast) => (
          <div
            key={toast.id}
            className={classNames(
              "pointer-events-auto flex max-w-md animate-[appear_150ms_ease-out] items-start gap-2 rounded-lg border bg-raised py-2 pr-2 pl-4 shadow-pop",
              toast.isError && "border-failed",
            )}
          >
            <p className={classNames("min-w-0 py-1 break-words", toast.isError && "text-failed")}>{toast.text}</p>
            <IconButton label="Dismiss" className="size-6 shrink-0" onClick={() => close(toast.id)}>
              <X className="size-3.5" />
            </IconButton>
          </div>
        ))}
      </div>
    </ToastContext>
  );
}

export function useToast(): ToastApi {
  return useContext(ToastContext);
}
