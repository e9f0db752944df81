/** The filter of the job list as tokens. They are typed or selected from suggestions, with the mouse or the keyboard. */

import { ListFilter, X } from "lucide-react";
import { useId, useRef, useState, type KeyboardEvent, type RefObject } from "react";

import { classNames } from "@/lib/class-names";
import { parseFilter, formatToken, type Token } from "@/lib/job-filter";
import { suggest, type SuggestionSource, type Suggestion } from "@/lib/job-filter-suggestions";

interface JobFilterBarProps {
  tokens: readonly Token[];
  known: SuggestionSource;
  onChange: (tokens: readonly Token[]) => void;
  /** The field got the focus: suggestions should be loaded. */
  onOpen?: () => void;
  /** Lets a shortcut focus the field. */
  inputRef?: RefObject<HTMLInputElement | null>;
}

export function JobFilterBar({ tokens, known, onChange, onOpen, inputRef }: JobFilterBarProps) {
  const listId = useId();
  const ownRef = useRef<HTMLInputElement>(null);
  const input = inputRef ?? ownRef;
  const [typed, setTyped] = useState("");
  const [isOpen, setOpen] = useState(false);
  const [active, setActive] = useState(-1);
  const [problem, setProblem] = useState<string | null>(null);
  const suggestions = isOpen ? suggest(typed, known) : [];

  function type(value: string) {
    setTyped(value);
    setOpen(true);
    setActive(-1);
    setProblem(null);
  }

  /** Turns the typed text into tokens. */
  function add(written: string) {
    if (written.trim() === "") return;
    const read = parseFilter(written);
    if (read.problem !== null) {
      setProblem(read.problem);
      return;
    }
    onChange([...tokens, ...read.tokens]);
    type("");
  }

  function selectSuggestion(suggestion: Suggestion) {
    if (suggestion.isComplete) add(suggestion.text);
    else type(suggestion.text);
    input.current?.focus();
  }

  function remove(place: number) {
    onChange(tokens.filter((_, at) => at !== place));
    input.current?.focus();
  }

  function onKeyDown(event: KeyboardEvent<HTMLInputElement>) {
    const selected = suggestions[active];
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setOpen(true);
      const step = event.key === "ArrowDown" ? 1 : -1;
      const size = suggestions.length + 1;
      setActive(((active + 1 + step + size) % size) - 1);
    } else if (event.key === "Enter" || (event.key === "Tab" && selected !== undefined)) {
      if (event.key === "Tab" || selected !== undefined || typed !== "") event.preventDefault();
      if (selected !== undefined) selectSuggestion(selected);
      else add(typed);
    } else if (event.key === " " && isComplete(typed)) {
      event.preventDefault();
      add(typed);
    } else if (event.key === "Escape") {
      if (isOpen) event.stopPropagation();
      setOpen(false);
      setActive(-1);
    } else if (event.key === "Backspace" && typed === "") {
      const last = tokens.at(-1);
      if (last === undefined) return;
      event.preventDefault();
      onChange(tokens.slice(0, -1));
      type(formatToken(last));
    }
  }

  return (
    <div className="relative min-w-0 flex-1">
      <div
        className={classNames(
          "flex min-h-9 flex-wrap items-center gap-1 rounded-md border bg-surface py-1 pr-1 pl-2.5 focus-within:outline-2 focus-within:outline-offset-1 focus-within:outline-focus",
          problem === null ? "border-line-strong/60" : "border-failed",
        )}
        onClick={() => input.current?.focus()}
      >
        <ListFilter aria-hidden className="mr-1 size-3.5 shrink-0 text-muted" />
        {tokens.map((token, place) => (
          <span
            key={`${token.key}-${token.value}`}
            className="inline-flex max-w-full items-center gap-0.5 rounded bg-sunken pl-1.5 text-xs"
          >
            <span className="truncate">
              {token.key !== "text" && <span className="text-muted">{token.key}:</span>}
              {token.value || '""'}
            </span>
            <button
              type="button"
              aria-label={`Remove ${formatToken(token)}`}
              className="inline-flex size-6 shrink-0 items-center justify-center rounded text-muted hover:bg-line hover:text-text"
              onClick={(event) => {
                event.stopPropagation();
                remove(place);
              }}
            >
              <X aria-hidden className="size-3" />
            </button>
          </span>
        ))}
        <input
          ref={input}
          role="combobox"
          aria-label="Filter jobs"
          aria-expanded={suggestions.length > 0}
          aria-controls={listId}
          aria-autocomplete="list"
          aria-activedescendant={active >= 0 ? `${listId}-${active}` : undefined}
          aria-invalid={problem !== null || undefined}
          aria-describedby={problem === null ? undefined : `${listId}-problem`}
          value={typed}
          placeholder={tokens.length === 0 ? "state:failed, or any text" : ""}
          autoComplete="off"
          autoCapitalize="off"
          spellCheck={false}
          className="h-6 min-w-20 flex-1 bg-transparent text-[13px] outline-none placeholder:text-muted"
          onChange={(event) => type(event.target.value)}
          onFocus={() => {
            setOpen(true);
            onOpen?.();
          }}
          onClick={() => setOpen(true)}
          onBlur={() => {
            setOpen(false);
            setActive(-1);
          }}
          onKeyDown={onKeyDown}
        />
        {tokens.length > 1 && (
          <button
            type="button"
            className="h-6 shrink-0 rounded px-2 text-xs text-muted hover:bg-sunken hover:text-text"
            onClick={() => {
              onChange([]);
              type("");
            }}
          >
            Clear
          </button>
        )}
      </div>
      {problem !== null && (
        <p id={`${listId}-problem`} role="alert" className="mt-1 text-xs text-failed">
          {problem}
        </p>
      )}
      <ul
        id={listId}
        role="listbox"
        aria-label="Suggestions"
        hidden={suggestions.length === 0}
        className="absolute top-full left-0 z-20 mt-1 max-h-80 w-full max-w-md overflow-y-auto rounded-lg border bg-raised p-1 shadow-pop"
      >
        {suggestions.map((suggestion, place) => (
          <li
            key={suggestion.text}
            id={`${listId}-${place}`}
            role="option"
            aria-selected={place === active}
            className={classNames(
              "flex cursor-pointer items-center justify-between gap-4 rounded px-2 py-1.5 text-[13px] hover:bg-sunken",
              place === active && "bg-sunken",
            )}
            // The field keeps the focus, so that the list stays open until an option is selected.
            onPointerDown={(event) => event.preventDefault()}
            onClick={() => selectSuggestion(suggestion)}
          >
            <span className="min-w-0 truncate">{suggestion.text}</span>
            <span className="shrink-0 text-xs text-muted">{suggestion.hint}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** A space ends a token, except inside quotes or in a text search of several words. */
function isComplete(typed: string): boolean {
  const { tokens, problem } = parseFilter(typed);
  const isQuoteOpen = (typed.match(/"/g) ?? []).length % 2 === 1;
  return !isQuoteOpen && problem === null && tokens.length === 1 && tokens[0]?.key !== "text";
}
