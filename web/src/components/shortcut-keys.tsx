const isMac = navigator.platform.startsWith("Mac");

/** Renders the keys of a shortcut: "mod+k", "g j". */
export function ShortcutKeys({ keys }: { keys: string }) {
  const text = keys
    .replace("mod+", isMac ? "⌘" : "Ctrl ")
    .replace("shift+", "⇧")
    .toUpperCase()
    .replace("CTRL", "Ctrl");
  return (
    <kbd className="rounded border border-line-strong/50 bg-surface px-1 font-sans text-[11px] text-muted">{text}</kbd>
  );
}
