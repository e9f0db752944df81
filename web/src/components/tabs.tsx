import { Tabs as Radix } from "radix-ui";
import type { ReactNode } from "react";

/** Tabs. The selected tab belongs in the URL. */
export function Tabs<V extends string>({
  label,
  value,
  onChange,
  tabs,
}: {
  label: string;
  value: V;
  onChange: (value: V) => void;
  tabs: readonly { value: V; label: ReactNode; content: ReactNode }[];
}) {
  return (
    <Radix.Root
      value={value}
      onValueChange={(selected) => onChange(selected as V)}
      className="flex min-w-0 flex-col gap-4"
    >
      <Radix.List aria-label={label} className="flex gap-1 overflow-x-auto border-b">
        {tabs.map((tab) => (
          <Radix.Trigger
            key={tab.value}
            value={tab.value}
            className="-mb-px border-b-2 border-transparent px-3 py-2 text-[13px] font-medium whitespace-nowrap text-muted hover:text-text data-[state=active]:border-accent data-[state=active]:text-text"
          >
            {tab.label}
          </Radix.Trigger>
        ))}
      </Radix.List>
      {tabs.map((tab) => (
        <Radix.Content key={tab.value} value={tab.value} className="min-w-0">
          {tab.content}
        </Radix.Content>
      ))}
    </Radix.Root>
  );
}
