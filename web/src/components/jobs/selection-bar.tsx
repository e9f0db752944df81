import { X } from "lucide-react";

import type { Action } from "@/api/operations";
import { Button, IconButton } from "@/components/button";
import { ACTIONS } from "@/components/operations/words";
import { count, plural } from "@/lib/numbers";

interface SelectionBarProps {
  chosen: number;
  isAll: boolean;
  /** How many match in all; null where only counting them would tell. */
  matching: number | null;
  /** Whether all that match can be meant: something must be asked for. */
  mayChooseAll: boolean;
  actions: readonly Action[];
  onAll: () => void;
  onClear: () => void;
  onAct: (action: Action) => void;
}

/** What can be done to the chosen jobs. It lies over the end of the list, so that nothing moves when it comes. */
export function SelectionBar(props: SelectionBarProps) {
  const { chosen, isAll, matching, mayChooseAll, actions, onAll, onClear, onAct } = props;
  return (
    <div
      role="toolbar"
      aria-label="Chosen jobs"
      className="fixed inset-x-2 bottom-2 z-30 mx-auto flex max-w-3xl flex-wrap items-center gap-2 rounded-lg border bg-raised px-3 py-2 shadow-pop md:left-54"
    >
      <span role="status" className="figures font-medium">
        {isAll ? (matching === null ? "All that match" : `All ${count(matching)}`) : `${count(chosen)} chosen`}
      </span>
      {!isAll && mayChooseAll && (
        <Button look="quiet" className="px-2 text-accent" onClick={onAll}>
          {matching === null ? "Choose all that match" : `Choose all ${plural(matching, "job")}`}
        </Button>
      )}
      <div className="ml-auto flex flex-wrap items-center gap-2">
        {actions.map((action) => (
          <Button
            key={action}
            className={ACTIONS[action].isDangerous ? "text-failed" : undefined}
            onClick={() => onAct(action)}
          >
            {ACTIONS[action].verb}
          </Button>
        ))}
        <IconButton label="Choose none" onClick={onClear}>
          <X className="size-4" />
        </IconButton>
      </div>
    </div>
  );
}
