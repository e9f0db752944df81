import type { LucideIcon } from "lucide-react";

import { Button } from "@/components/button";
import { classes } from "@/lib/classes";

interface ToggleProps {
  icon: LucideIcon;
  label: string;
  isOn: boolean;
  onToggle: () => void;
}

/** A quiet button that stays pressed: how something is shown. Whether it is pressed belongs into the URL. */
export function Toggle({ icon: Icon, label, isOn, onToggle }: ToggleProps) {
  return (
    <Button
      look="quiet"
      aria-pressed={isOn}
      className={classes("h-7 px-2", isOn && "bg-accent-soft text-text")}
      onClick={onToggle}
    >
      <Icon aria-hidden className={classes("size-3.5", isOn && "text-accent")} />
      {label}
    </Button>
  );
}
