/**
 * Jobs, however many: only the rows in view exist. Rows are chosen with the mouse (click, shift-click) or the keyboard
 * (arrows, x, shift and arrows); Enter opens one.
 */

import { Link } from "@tanstack/react-router";
import { createColumnHelper, FlexRender, tableFeatures, useTable, type Row } from "@tanstack/react-table";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import {
  memo,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
  type KeyboardEvent,
  type MouseEvent,
  type RefObject,
} from "react";

import type { Job } from "@/api/jobs";
import { StateBadge } from "@/components/badge";
import { Attempts, Note, priorityName, shortId, Took, When } from "@/components/jobs/job-cells";
import type { Selection } from "@/lib/choice";
import { classes } from "@/lib/classes";
import { useMedia } from "@/lib/media";
import { keyOf } from "@/lib/rows";

const ROW_PX = 36;
const PHONE_ROW_PX = 60;
/** Rows beyond the edges of the window that exist as well. */
const OVERSCAN = 12;
/** Below this many rows from the end the next page is asked for: early enough for who scrolls fast. */
const NEAR_END = 100;

const features = tableFeatures({});
const helper = createColumnHelper<typeof features, Job>();
const COLUMNS = helper.columns([
  helper.display({ id: "state", header: "State", cell: ({ row }) => <StateBadge state={row.original.status} /> }),
  helper.display({ id: "id", header: "Id", cell: ({ row }) => <IdLink job={row.original} /> }),
  helper.accessor("type", { header: "Task" }),
  helper.accessor("queue", { header: "Queue" }),
  helper.accessor("priority", { header: "Priority", cell: (cell) => priorityName(cell.getValue()) }),
  helper.display({ id: "attempts", header: "Attempts", cell: ({ row }) => <Attempts job={row.original} /> }),
  helper.display({ id: "when", header: "Enqueued, due", cell: ({ row }) => <When job={row.original} /> }),
  helper.display({ id: "took", header: "Waited, ran", cell: ({ row }) => <Took job={row.original} /> }),
  helper.accessor("worker", { header: "Worker", cell: ({ getValue }) => <WorkerName name={getValue()} /> }),
  helper.display({ id: "note", header: "Error, progress", cell: ({ row }) => <Note job={row.original} /> }),
]);

const GRID =
  "grid grid-cols-[2.25rem_6.75rem_minmax(7rem,1.2fr)_minmax(5rem,1fr)_minmax(4rem,0.8fr)_5rem_7rem_7rem_minmax(8rem,2.4fr)] xl:grid-cols-[2.25rem_6.75rem_minmax(9.5rem,1.3fr)_minmax(5rem,1fr)_minmax(4rem,0.7fr)_4.5rem_5rem_7rem_7rem_minmax(8rem,0.8fr)_minmax(9rem,2.2fr)]";
/** Where there is less room, what matters least is left out. */
const WIDE_ONLY: ReadonlySet<string> = new Set(["priority", "worker"]);

interface JobTableProps {
  rows: readonly Job[];
  gone: ReadonlySet<string>;
  selection: Selection;
  /** Whether anything can be done to what is chosen. */
  isSelectable: boolean;
  onToggle: (row: number, isRange: boolean) => void;
  onExtend: (row: number) => void;
  onToggleAll: () => void;
  onOpen: (job: Job) => void;
  onNearEnd: () => void;
  /** The first row in view. */
  onScrolled: (row: number) => void;
}

export function JobTable(props: JobTableProps) {
  const { rows, selection, isSelectable, onToggle, onExtend, onToggleAll, onOpen, onNearEnd, onScrolled } = props;
  const isWide = useMedia("(min-width: 1024px)");
  const list = useRef<HTMLDivElement>(null);
  const [margin, setMargin] = useState(0);
  const [focused, setFocused] = useState(0);
  const virtual = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => (isWide ? ROW_PX : PHONE_ROW_PX),
    overscan: OVERSCAN,
    scrollMargin: margin,
    // Below the header of the page and that of the table.
    scrollPaddingStart: 48 + 36,
    scrollPaddingEnd: 72,
  });
  const items = virtual.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const end = (items.at(-1)?.index ?? -1) + 1;
  const inView = virtual.range?.startIndex ?? 0;
  // The table knows the rows in view alone: a model of 100,000 would be made anew with every change.
  const data = useShown(rows, first, end);
  const table = useTable({ features, columns: COLUMNS, data, getRowId: keyOf });
  const models = table.getRowModel().rows;

  useLayoutEffect(() => {
    // What stands above may change its height: another line of conditions, an operation that goes on.
    const measure = () => setMargin((list.current?.getBoundingClientRect().top ?? 0) + window.scrollY);
    const observer = new ResizeObserver(measure);
    observer.observe(document.body);
    measure();
    return () => observer.disconnect();
  }, [isWide]);
  useEffect(() => virtual.measure(), [virtual, isWide]);
  useEffect(() => {
    if (end > rows.length - NEAR_END) onNearEnd();
  }, [end, rows.length, onNearEnd]);
  useEffect(() => onScrolled(inView), [inView, onScrolled]);

  function moveTo(row: number) {
    const target = Math.min(Math.max(0, row), rows.length - 1);
    setFocused(target);
    virtual.scrollToIndex(target, { align: "auto" });
    // The row may exist only after the next paint.
    requestAnimationFrame(() => list.current?.querySelector<HTMLElement>(`[data-row="${target}"]`)?.focus());
    return target;
  }

  function onKeyDown(event: KeyboardEvent<HTMLDivElement>, row: number) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const target = moveTo(row + (event.key === "ArrowDown" ? 1 : -1));
      if (event.shiftKey && isSelectable) onExtend(target);
    } else if ((event.key === "x" || event.key === " ") && isSelectable && event.target === event.currentTarget) {
      event.preventDefault();
      onToggle(row, false);
    } else if (event.key === "Enter" && event.target === event.currentTarget) {
      const job = rows[row];
      if (job !== undefined) onOpen(job);
    }
  }

  function onRowClick(event: MouseEvent<HTMLDivElement>, row: number) {
    setFocused(row);
    if (!isSelectable || (event.target as HTMLElement).closest("a, input, label, button")) return;
    if (event.shiftKey) {
      window.getSelection()?.removeAllRanges();
      onToggle(row, true);
    } else if (event.ctrlKey || event.metaKey) onToggle(row, false);
  }

  const now: RowActions = { onFocus: setFocused, onClick: onRowClick, onKeyDown, onToggle };
  const actions = useRef(now);
  useEffect(() => {
    actions.current = now;
  });
  // One row can be reached with Tab; where the last one is out of view, the first that is in it.
  const tabStop = focused >= first && focused < end ? focused : inView;
  const isAllChosen = useMemo(
    () => rows.length > 0 && (selection.isAll || rows.every((job) => selection.keys.has(keyOf(job)))),
    [rows, selection],
  );
  return (
    <div
      role="grid"
      aria-label="Jobs"
      aria-rowcount={-1}
      aria-multiselectable={isSelectable || undefined}
      className="min-w-0 border-y bg-surface md:rounded-lg md:border-x"
    >
      {isWide && (
        <div
          role="row"
          className={classes(GRID, "sticky top-12 z-10 h-9 items-center rounded-t-lg border-b bg-surface text-xs")}
        >
          <div role="columnheader" className="flex h-full items-center justify-center">
            {isSelectable && (
              <input
                type="checkbox"
                aria-label="Choose all loaded jobs"
                className="size-4 accent-(--accent)"
                checked={isAllChosen}
                onChange={onToggleAll}
              />
            )}
            {!isSelectable && <span className="sr-only">Choice</span>}
          </div>
          {table.getHeaderGroups()[0]?.headers.map((header) => (
            <div
              key={header.id}
              role="columnheader"
              className={classes("truncate px-2 font-medium text-muted", WIDE_ONLY.has(header.id) && "hidden xl:block")}
            >
              <FlexRender header={header} />
            </div>
          ))}
        </div>
      )}
      <div ref={list} role="rowgroup" className="relative" style={{ height: virtual.getTotalSize() }}>
        {items.map((item, place) => {
          const model = models[place];
          if (model === undefined) return null;
          const key = keyOf(model.original);
          return (
            <JobRow
              key={key}
              model={model}
              job={model.original}
              index={item.index}
              top={item.start - margin}
              height={item.size}
              isWide={isWide}
              isSelectable={isSelectable}
              isChosen={selection.isAll || selection.keys.has(key)}
              isGone={props.gone.has(key)}
              isTabStop={item.index === tabStop}
              actions={actions}
            />
          );
        })}
      </div>
    </div>
  );
}

interface RowActions {
  readonly onFocus: (row: number) => void;
  readonly onClick: (event: MouseEvent<HTMLDivElement>, row: number) => void;
  readonly onKeyDown: (event: KeyboardEvent<HTMLDivElement>, row: number) => void;
  readonly onToggle: (row: number, isRange: boolean) => void;
}

interface JobRowProps {
  model: Row<typeof features, Job>;
  job: Job;
  index: number;
  top: number;
  height: number;
  isWide: boolean;
  isSelectable: boolean;
  isChosen: boolean;
  isGone: boolean;
  isTabStop: boolean;
  /** What is done now, whatever it was when the row was drawn. */
  actions: RefObject<RowActions>;
}

/** Drawn again only when what it shows has changed: scrolling draws the rows that come into view, and no others. */
const JobRow = memo(
  function JobRow(props: JobRowProps) {
    const { model, job, index, isWide, isSelectable, isChosen, isGone, actions } = props;
    return (
      <div
        role="row"
        data-row={index}
        aria-rowindex={index + 1}
        aria-selected={isSelectable ? isChosen : undefined}
        tabIndex={props.isTabStop ? 0 : -1}
        title={isGone ? "It has moved on since, and matches no longer" : undefined}
        style={{ height: props.height, transform: `translateY(${props.top}px)` }}
        className={classes(
          "absolute top-0 left-0 w-full items-center border-b contain-strict border-line/60 text-[13px] outline-offset-[-2px]",
          isWide ? GRID : "flex",
          isChosen ? "bg-accent-soft" : "hover:bg-sunken/60",
          isGone && "opacity-60",
        )}
        onFocus={() => actions.current.onFocus(index)}
        onClick={(event) => actions.current.onClick(event, index)}
        onKeyDown={(event) => actions.current.onKeyDown(event, index)}
      >
        {(isSelectable || isWide) && (
          <div role="gridcell" className="flex h-full w-9 shrink-0 items-stretch justify-center">
            {isSelectable && (
              <label className="flex w-full cursor-pointer items-center justify-center">
                <input
                  type="checkbox"
                  aria-label={`Choose ${job.jobId}`}
                  className="size-4 accent-(--accent)"
                  tabIndex={-1}
                  checked={isChosen}
                  readOnly
                  onClick={(event) => actions.current.onToggle(index, event.shiftKey)}
                />
              </label>
            )}
          </div>
        )}
        {isWide ? (
          model.getAllCells().map((cell) => (
            <div
              key={cell.id}
              role="gridcell"
              className={classes(
                "min-w-0 truncate px-2",
                WIDE_ONLY.has(cell.column.id) && "hidden text-muted xl:block",
              )}
            >
              <FlexRender cell={cell} />
            </div>
          ))
        ) : (
          <PhoneRow job={job} isIndented={!isSelectable} />
        )}
      </div>
    );
  },
  // The model of a row is made anew with every scroll; what it shows is the job.
  ({ model: _before, ...before }, { model: _now, ...now }) =>
    (Object.keys(now) as (keyof typeof now)[]).every((name) => before[name] === now[name]),
);

function useShown(rows: readonly Job[], first: number, end: number): Job[] {
  return useMemo(() => rows.slice(first, end), [rows, first, end]);
}

function IdLink({ job }: { job: Job }) {
  return (
    <Link
      to="/jobs/$id"
      params={{ id: job.jobId }}
      preload={false}
      title={job.jobId}
      className="block truncate font-mono text-xs underline-offset-2 hover:underline"
    >
      {shortId(job)}
    </Link>
  );
}

function WorkerName({ name }: { name: string | null }) {
  return (
    <span className="block truncate font-mono text-xs" title={name ?? undefined}>
      {name}
    </span>
  );
}

/** Two lines: what it is and when, then which one and why. */
function PhoneRow({ job, isIndented }: { job: Job; isIndented: boolean }) {
  return (
    <div role="gridcell" className={classes("flex min-w-0 flex-1 flex-col gap-0.5 pr-4", isIndented && "pl-4")}>
      <div className="flex min-w-0 items-center gap-2">
        <StateBadge state={job.status} />
        <span className="min-w-0 flex-1 truncate font-medium">{job.type}</span>
        <span className="shrink-0 text-xs text-muted">
          <When job={job} />
        </span>
      </div>
      <div className="flex min-w-0 items-center gap-2 text-xs">
        <span className="max-w-[55%] min-w-0 shrink-0">
          <Link
            to="/jobs/$id"
            params={{ id: job.jobId }}
            preload={false}
            className="flex min-h-6 items-center font-mono underline underline-offset-2"
          >
            <span className="truncate">{job.jobId}</span>
          </Link>
        </span>
        <span className="min-w-0 flex-1">
          <Note job={job} />
        </span>
      </div>
    </div>
  );
}
