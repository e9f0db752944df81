import { Search, X } from "lucide-react";
import { useEffect, useState } from "react";

import { IconButton } from "@/components/buttons";

const DEBOUNCE_MS = 250;

/** A search input. Reports the text when the user pauses typing or presses Enter. */
export function SearchField({
  label,
  value,
  onChange,
}: {
  label: string;
  value: string;
  onChange: (value: string) => void;
}) {
  const [text, setText] = useState(value);
  const [applied, setApplied] = useState(value);
  if (applied !== value) {
    // The URL changed elsewhere: browser history, or cleared filters.
    setApplied(value);
    setText(value);
  }
  useEffect(() => {
    if (text.trim() === value) return;
    const timer = setTimeout(() => onChange(text.trim()), DEBOUNCE_MS);
    return () => clearTimeout(timer);
  }, [text, value, onChange]);
  return (
    <div className="relative min-w-44 flex-1 sm:max-w-72">
      <Search aria-hidden className="absolute top-2 left-2.5 size-4 text-muted" />
      <input
        type="search"
        aria-label={label}
        placeholder={label}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => event.key === "Enter" && onChange(text.trim())}
        className="h-8 w-full rounded-md border border-line-strong/60 bg-surface pr-8 pl-8 text-[13px] placeholder:text-muted [&::-webkit-search-cancel-button]:hidden"
      />
      {text !== "" && (
        <IconButton
          label="Clear"
          className="absolute top-1 right-1 size-6"
          onClick={() => {
            setText("");
            onChange("");
          }}
        >
          <X className="size-3.5" />
        </IconButton>
      )}
    </div>
  );
}
