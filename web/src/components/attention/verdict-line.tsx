import { CircleAlert, CircleCheck, TriangleAlert, type LucideIcon } from "lucide-react";

import type { Verdict } from "@/api/finding-acknowledgement";
import { classNames } from "@/lib/class-names";
import { toFullSentence } from "@/lib/format-server-message";

interface VerdictLook {
  readonly icon: LucideIcon;
  readonly frame: string;
  readonly mark: string;
}

const LOOKS: Record<Verdict["level"], VerdictLook> = {
  ok: { icon: CircleCheck, frame: "bg-surface", mark: "text-completed" },
  warn: { icon: TriangleAlert, frame: "border-blocked bg-blocked-soft", mark: "text-blocked" },
  fail: { icon: CircleAlert, frame: "border-failed bg-failed-soft", mark: "text-failed" },
};

/** The state of the whole system in one sentence. */
export function VerdictLine({ verdict }: { verdict: Verdict }) {
  const { icon: Icon, frame, mark } = LOOKS[verdict.level];
  return (
    <p
      role="status"
      aria-label="Verdict"
      className={classNames("flex items-start gap-3 rounded-lg border px-4 py-3 text-[15px] font-medium", frame)}
    >
      <Icon aria-hidden className={classNames("mt-0.5 size-4.5 shrink-0", mark)} />
      <span className="min-w-0 break-words">{toFullSentence(verdict.text)}</span>
    </p>
  );
}
