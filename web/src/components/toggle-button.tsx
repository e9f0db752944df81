import type { LucideIcon } from "lucide-react";

import { Button } from "@/components/buttons";
import { classNames } from "@/lib/class-names";

interface ToggleProps {
  icon: LucideIcon;
  label: string;
  isOn: boolean;
  onToggle: () => void;
}

/** A toggle button for a view option. Its state belongs in the URL. */
export function ToggleButton({ icon: Icon, label, isOn, onToggle }: ToggleProps) {
  return (
    <Button
      variant="quiet"
      aria-pressed={isOn}
      className={classNames("h-7 px-2", isOn && "bg-accent-soft text-text")}
      onClick={onToggle}
    >
      <Icon aria-hidden className={classNames("size-3.5", isOn && "text-accent")} />
      {label}
    </Button>
  );
}
