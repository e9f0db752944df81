/** Keyboard shortcuts. A sequence is written with a space ("g j"); inactive while the user types or a dialog is open. */

import { useEffect, useRef } from "react";

export type Shortcuts = Readonly<Record<string, () => void>>;

const SEQUENCE_MS = 1000;

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName))
  );
}

function keyName(event: KeyboardEvent): string {
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  return event.metaKey || event.ctrlKey ? `mod+${key}` : key;
}

export function useKeyboardShortcuts(shortcuts: Shortcuts): void {
  const latest = useRef(shortcuts);
  useEffect(() => {
    latest.current = shortcuts;
  });
  useEffect(() => {
    let before = "";
    let beforeAt = 0;
    const onKey = (event: KeyboardEvent) => {
      const name = keyName(event);
      const isModified = name.startsWith("mod+");
      if (event.altKey || event.defaultPrevented || (!isModified && isTyping(event.target))) return;
      if (!isModified && document.querySelector('[role="dialog"], [role="menu"]')) return;
      const sequence = event.timeStamp - beforeAt < SEQUENCE_MS ? `${before} ${name}` : name;
      const act = latest.current[sequence] ?? latest.current[name];
      before = name;
      beforeAt = event.timeStamp;
      if (!act) return;
      event.preventDefault();
      before = "";
      act();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, []);
}
