import { X } from "lucide-react";

import type { BulkAction } from "@/api/bulk-operations";
import { BULK_ACTIONS } from "@/components/bulk-operations/bulk-actions";
import { Button, IconButton } from "@/components/buttons";
import { formatCount, formatPlural } from "@/lib/format-number";

interface SelectedJobsBarProps {
  selected: number;
  isAll: boolean;
  /** Number of matching jobs; null if it is unknown. */
  matching: number | null;
  /** Whether all matching jobs can be selected: requires a filter. */
  canSelectAll: boolean;
  actions: readonly BulkAction[];
  onSelectAll: () => void;
  onClear: () => void;
  onAction: (action: BulkAction) => void;
}

/** The actions for the selected jobs. It overlays the end of the list, so that nothing moves when it appears. */
export function SelectedJobsBar(props: SelectedJobsBarProps) {
  const { selected, isAll, matching, canSelectAll, actions, onSelectAll, onClear, onAction } = props;
  return (
    <div
      role="toolbar"
      aria-label="Selected jobs"
      className="fixed inset-x-2 bottom-2 z-30 mx-auto flex max-w-3xl flex-wrap items-center gap-2 rounded-lg border bg-raised px-3 py-2 shadow-pop md:left-54"
    >
      <span role="status" className="tabular-nums font-medium">
        {isAll
          ? matching === null
            ? "All matching jobs"
            : `All ${formatCount(matching)} selected`
          : `${formatCount(selected)} selected`}
      </span>
      {!isAll && canSelectAll && (
        <Button variant="quiet" className="px-2 text-accent" onClick={onSelectAll}>
          {matching === null ? "Select all matching" : `Select all ${formatPlural(matching, "job")}`}
        </Button>
      )}
      <div className="ml-auto flex flex-wrap items-center gap-2">
        {actions.map((action) => (
          <Button
            key={action}
            className={BULK_ACTIONS[action].isDangerous ? "text-failed" : undefined}
            onClick={() => onAction(action)}
          >
            {BULK_ACTIONS[action].verb}
          </Button>
        ))}
        <IconButton label="Clear selection" onClick={onClear}>
          <X className="size-4" />
        </IconButton>
      </div>
    </div>
  );
}
