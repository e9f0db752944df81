/** A dropdown menu and its items. */

import { Check } from "lucide-react";
import { DropdownMenu as Radix } from "radix-ui";
import type { ReactNode } from "react";

import { classNames } from "@/lib/class-names";

const ITEM =
  "flex w-full cursor-default items-center gap-2 rounded px-2 py-1.5 text-[13px] outline-none select-none data-disabled:opacity-50 data-highlighted:bg-sunken";

export function DropdownMenu({
  trigger,
  children,
  align = "end",
}: {
  trigger: ReactNode;
  children: ReactNode;
  align?: "start" | "end";
}) {
  return (
    // A menu is not modal: elements hidden from screen readers could still be reached with Tab.
    <Radix.Root modal={false}>
      <Radix.Trigger asChild>{trigger}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content
          align={align}
          sideOffset={4}
          className="z-50 min-w-44 rounded-lg border bg-raised p-1 shadow-pop"
        >
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

interface MenuItemProps {
  children: ReactNode;
  onSelect: () => void;
  isDangerous?: boolean;
  isDisabled?: boolean;
}

export function MenuItem({ children, onSelect, isDangerous, isDisabled }: MenuItemProps) {
  return (
    <Radix.Item disabled={isDisabled} onSelect={onSelect} className={classNames(ITEM, isDangerous && "text-failed")}>
      {children}
    </Radix.Item>
  );
}

/** Menu items of which one is selected. */
export function MenuRadioGroup<V extends string>({
  label,
  value,
  onChange,
  options,
}: {
  label: string;
  value: V;
  onChange: (value: V) => void;
  options: readonly { value: V; label: string; icon?: ReactNode }[];
}) {
  return (
    <Radix.RadioGroup value={value} onValueChange={(selected) => onChange(selected as V)}>
      <Radix.Label className="px-2 pt-1.5 pb-1 text-xs text-muted">{label}</Radix.Label>
      {options.map((option) => (
        <Radix.RadioItem key={option.value} value={option.value} className={ITEM}>
          {option.icon}
          <span className="flex-1">{option.label}</span>
          <Radix.ItemIndicator>
            <Check className="size-3.5" />
          </Radix.ItemIndicator>
        </Radix.RadioItem>
      ))}
    </Radix.RadioGroup>
  );
}

export function MenuSeparator() {
  return <Radix.Separator className="my-1 h-px bg-line" />;
}
