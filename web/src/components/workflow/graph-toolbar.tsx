/** What of a workflow's graph is shown. What is chosen stands in the URL. */

import { Eye, EyeOff, LocateFixed, Rows3, SquareStack } from "lucide-react";

import { Button } from "@/components/button";
import { Toggle } from "@/components/toggle";
import { plural } from "@/lib/numbers";

interface GraphToolbarProps {
  isDoneHidden: boolean;
  /** How many steps are on no card. */
  hidden: number;
  onHideDone: (isHidden: boolean) => void;
  isFollowing: boolean;
  /** Undefined where nothing will run any more. */
  onFollow?: (isFollowing: boolean) => void;
  areAllOpen: boolean;
  /** Undefined where no steps are alike. */
  onOpenAll?: (areOpen: boolean) => void;
}

export function GraphToolbar(props: GraphToolbarProps) {
  const { isDoneHidden, hidden, onHideDone, isFollowing, onFollow, areAllOpen, onOpenAll } = props;
  return (
    <div
      role="group"
      aria-label="What the graph shows"
      className="flex flex-wrap items-center gap-1 border-b px-2 py-1"
    >
      <Toggle
        icon={isDoneHidden ? EyeOff : Eye}
        label="Hide done"
        isOn={isDoneHidden}
        onToggle={() => onHideDone(!isDoneHidden)}
      />
      {onFollow && (
        <Toggle
          icon={LocateFixed}
          label="Follow what runs"
          isOn={isFollowing}
          onToggle={() => onFollow(!isFollowing)}
        />
      )}
      {onOpenAll && (
        <Button look="quiet" className="h-7 px-2" onClick={() => onOpenAll(!areAllOpen)}>
          {areAllOpen ? <SquareStack aria-hidden className="size-3.5" /> : <Rows3 aria-hidden className="size-3.5" />}
          {areAllOpen ? "Close all groups" : "Open all groups"}
        </Button>
      )}
      <span role="status" className="figures ml-auto px-2 text-xs text-muted">
        {hidden > 0 && `${plural(hidden, "step")} hidden`}
      </span>
    </div>
  );
}
