/** The options of the workflow graph. They are stored in the URL. */

import { Eye, EyeOff, LocateFixed, Rows3, SquareStack } from "lucide-react";

import { Button } from "@/components/buttons";
import { ToggleButton } from "@/components/toggle-button";
import { formatPlural } from "@/lib/format-number";

interface GraphViewOptionsProps {
  isDoneHidden: boolean;
  /** Number of hidden steps. */
  hidden: number;
  onHideDone: (isHidden: boolean) => void;
  isFollowing: boolean;
  /** Undefined if no step will run any more. */
  onFollow?: (isFollowing: boolean) => void;
  areAllOpen: boolean;
  /** Undefined if there are no groups. */
  onOpenAll?: (areOpen: boolean) => void;
}

export function GraphViewOptions(props: GraphViewOptionsProps) {
  const { isDoneHidden, hidden, onHideDone, isFollowing, onFollow, areAllOpen, onOpenAll } = props;
  return (
    <div role="group" aria-label="Graph options" className="flex flex-wrap items-center gap-1 border-b px-2 py-1">
      <ToggleButton
        icon={isDoneHidden ? EyeOff : Eye}
        label="Hide completed"
        isOn={isDoneHidden}
        onToggle={() => onHideDone(!isDoneHidden)}
      />
      {onFollow && (
        <ToggleButton
          icon={LocateFixed}
          label="Follow running steps"
          isOn={isFollowing}
          onToggle={() => onFollow(!isFollowing)}
        />
      )}
      {onOpenAll && (
        <Button variant="quiet" className="h-7 px-2" onClick={() => onOpenAll(!areAllOpen)}>
          {areAllOpen ? <SquareStack aria-hidden className="size-3.5" /> : <Rows3 aria-hidden className="size-3.5" />}
          {areAllOpen ? "Collapse all groups" : "Expand all groups"}
        </Button>
      )}
      <span role="status" className="tabular-nums ml-auto px-2 text-xs text-muted">
        {hidden > 0 && `${formatPlural(hidden, "step")} hidden`}
      </span>
    </div>
  );
}
