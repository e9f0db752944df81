/**
 * The virtualised job table: only the rows in view exist. A click or Enter opens a job. Rows are selected with their
 * check boxes, with ctrl-click and shift-click, or with the keyboard (arrows, x, shift and arrows).
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

import type { Job } from "@/api/job-list";
import { JobStateBadge } from "@/components/badges";
import {
  Arguments,
  AttemptCount,
  EnqueuedOrDue,
  ErrorOrProgress,
  Ran,
  RowDisplayProvider,
  shortId,
  Waited,
  type RowDisplay,
} from "@/components/jobs/job-table-cells";
import { classNames } from "@/lib/class-names";
import { priorityName } from "@/lib/job-priorities";
import { runKey } from "@/lib/run-key";
import { useMediaQuery } from "@/lib/use-media-query";
import type { Selection } from "@/lib/use-row-selection";

const ROW_PX = 36;
const PHONE_ROW_PX = 60;
/** Rows rendered beyond the edges of the window. */
const OVERSCAN = 12;
/** Fewer rows than this below the view: the next page is fetched, early enough for fast scrolling. */
const NEAR_END = 100;

const features = tableFeatures({});
const helper = createColumnHelper<typeof features, Job>();
const COLUMNS = helper.columns([
  helper.display({ id: "state", header: "State", cell: ({ row }) => <JobStateBadge state={row.original.status} /> }),
  helper.display({ id: "id", header: "ID", cell: ({ row }) => <IdLink job={row.original} /> }),
  helper.accessor("type", { header: "Task" }),
  helper.display({ id: "arguments", header: "Arguments", cell: ({ row }) => <Arguments job={row.original} /> }),
  helper.accessor("queue", { header: "Queue" }),
  helper.accessor("priority", { header: "Priority", cell: (cell) => priorityName(cell.getValue()) }),
  helper.display({ id: "attempts", header: "Attempts", cell: ({ row }) => <AttemptCount job={row.original} /> }),
  helper.display({ id: "when", header: "Enqueued / due", cell: ({ row }) => <EnqueuedOrDue job={row.original} /> }),
  helper.display({ id: "waited", header: "Waited", cell: ({ row }) => <Waited job={row.original} /> }),
  helper.display({ id: "ran", header: "Ran", cell: ({ row }) => <Ran job={row.original} /> }),
  helper.display({ id: "note", header: "Error / progress", cell: ({ row }) => <ErrorOrProgress job={row.original} /> }),
]);

/** The grid columns are in styles.css. */
const GRID = "job-table-grid";
/** Columns that are hidden on narrow screens. */
const WIDE_ONLY: ReadonlySet<string> = new Set(["priority", "attempts"]);

interface JobTableProps {
  rows: readonly Job[];
  gone: ReadonlySet<string>;
  selection: Selection;
  display: RowDisplay;
  /** Whether the user may act on a selection. */
  isSelectable: boolean;
  onToggle: (row: number, isRange: boolean) => void;
  onExtend: (row: number) => void;
  onToggleAll: () => void;
  onOpen: (job: Job) => void;
  onNearEnd: () => void;
  /** The first row in view. */
  onScroll: (row: number) => void;
}

export function JobTable(props: JobTableProps) {
  const { rows, selection, isSelectable, onToggle, onExtend, onToggleAll, onOpen, onNearEnd, onScroll } = props;
  const isWide = useMediaQuery("(min-width: 1024px)");
  const list = useRef<HTMLDivElement>(null);
  const [margin, setMargin] = useState(0);
  const [focused, setFocused] = useState(0);
  const virtual = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => (isWide ? ROW_PX : PHONE_ROW_PX),
    overscan: OVERSCAN,
    scrollMargin: margin,
    // The table starts below the page header and its own header.
    scrollPaddingStart: 48 + 36,
    scrollPaddingEnd: 72,
  });
  const items = virtual.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const end = (items.at(-1)?.index ?? -1) + 1;
  const inView = virtual.range?.startIndex ?? 0;
  // Only the rows in view are passed to the table: a model of 100,000 rows would be rebuilt with every change.
  const data = useVisibleRows(rows, first, end);
  const table = useTable({ features, columns: COLUMNS, data, getRowId: runKey });
  const models = table.getRowModel().rows;

  useLayoutEffect(() => {
    // The content above may change its height: another line of tokens, a running operation.
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
  useEffect(() => onScroll(inView), [inView, onScroll]);

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
    if ((event.target as HTMLElement).closest("a, input, label, button")) return;
    if (isSelectable && event.shiftKey) {
      window.getSelection()?.removeAllRanges();
      onToggle(row, true);
    } else if (event.ctrlKey || event.metaKey) {
      if (isSelectable) onToggle(row, false);
    } else if (window.getSelection()?.isCollapsed !== false) {
      // Marking a text to copy it ends with a click, too.
      const job = rows[row];
      if (job !== undefined) onOpen(job);
    }
  }

  const now: RowActions = { onFocus: setFocused, onClick: onRowClick, onKeyDown, onToggle };
  const actions = useRef(now);
  useEffect(() => {
    actions.current = now;
  });
  // One row is in the tab order: the last active one, or the first in view.
  const tabStop = focused >= first && focused < end ? focused : inView;
  const areAllSelected = useMemo(
    () => rows.length > 0 && (selection.isAll || rows.every((job) => selection.keys.has(runKey(job)))),
    [rows, selection],
  );
  return (
    <RowDisplayProvider value={props.display}>
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
            className={classNames(GRID, "sticky top-12 z-10 h-9 items-center rounded-t-lg border-b bg-surface text-xs")}
          >
            <div role="columnheader" className="flex h-full items-center justify-center">
              {isSelectable && (
                <input
                  type="checkbox"
                  aria-label="Select all loaded jobs"
                  className="size-4 accent-(--accent)"
                  checked={areAllSelected}
                  onChange={onToggleAll}
                />
              )}
              {!isSelectable && <span className="sr-only">Selection</span>}
            </div>
            {table.getHeaderGroups()[0]?.headers.map((header) => (
              <div
                key={header.id}
                role="columnheader"
                className={classNames(
                  "truncate px-2 font-medium text-muted",
                  WIDE_ONLY.has(header.id) && "hidden xl:block",
                )}
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
            const key = runKey(model.original);
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
                isSelected={selection.isAll || selection.keys.has(key)}
                isGone={props.gone.has(key)}
                isTabStop={item.index === tabStop}
                actions={actions}
              />
            );
          })}
        </div>
      </div>
    </RowDisplayProvider>
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
  isSelected: boolean;
  isGone: boolean;
  isTabStop: boolean;
  /** The current handlers, also for rows rendered earlier. */
  actions: RefObject<RowActions>;
}

/** Rendered again only if its content has changed: scrolling renders only the rows that come into view. */
const JobRow = memo(
  function JobRow(props: JobRowProps) {
    const { model, job, index, isWide, isSelectable, isSelected, isGone, actions } = props;
    return (
      <div
        role="row"
        data-row={index}
        aria-rowindex={index + 1}
        aria-selected={isSelectable ? isSelected : undefined}
        tabIndex={props.isTabStop ? 0 : -1}
        title={isGone ? "Changed since the list was loaded; no longer matches the filter" : undefined}
        style={{ height: props.height, transform: `translateY(${props.top}px)` }}
        className={classNames(
          "absolute top-0 left-0 w-full cursor-pointer items-center border-b contain-strict border-line/60 text-[13px] outline-offset-[-2px]",
          isWide ? GRID : "flex",
          isSelected ? "bg-accent-soft" : "hover:bg-sunken/60",
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
                  aria-label={`Select ${job.jobId}`}
                  className="size-4 accent-(--accent)"
                  tabIndex={-1}
                  checked={isSelected}
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
              className={classNames(
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
  // The row model changes with every scroll; the content depends on the job only.
  ({ model: _before, ...before }, { model: _now, ...now }) =>
    (Object.keys(now) as (keyof typeof now)[]).every((name) => before[name] === now[name]),
);

function useVisibleRows(rows: readonly Job[], first: number, end: number): Job[] {
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

/** Two lines: state, task, arguments and time; ID and error or progress. */
function PhoneRow({ job, isIndented }: { job: Job; isIndented: boolean }) {
  return (
    <div role="gridcell" className={classNames("flex min-w-0 flex-1 flex-col gap-0.5 pr-4", isIndented && "pl-4")}>
      <div className="flex min-w-0 items-center gap-2">
        <JobStateBadge state={job.status} />
        <span className="max-w-[45%] shrink-0 truncate font-medium">{job.type}</span>
        <span className="min-w-0 flex-1 text-xs text-muted">
          <Arguments job={job} />
        </span>
        <span className="shrink-0 text-xs text-muted">
          <EnqueuedOrDue job={job} />
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
          <ErrorOrProgress job={job} />
        </span>
      </div>
    </div>
  );
}
