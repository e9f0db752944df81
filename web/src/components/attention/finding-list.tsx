/** The attention list: each finding with what to do, and who has acknowledged it. */

import { Link } from "@tanstack/react-router";
import { BellOff, ChevronRight, CircleAlert, Info, TriangleAlert } from "lucide-react";

import type { Finding } from "@/api/finding-acknowledgement";
import { findingLink } from "@/components/attention/finding-link";
import { Button } from "@/components/buttons";
import { AbsoluteTime, RelativeTime } from "@/components/relative-time-and-duration";
import { TextWithInlineCode } from "@/components/text-with-inline-code";
import { classNames } from "@/lib/class-names";
import { formatPlural } from "@/lib/format-number";
import { toFullSentence } from "@/lib/format-server-message";

interface FindingListProps {
  label: string;
  findings: readonly Finding[];
  /** Undefined if the user's role does not allow it. */
  onAcknowledge?: (finding: Finding) => void;
  onRemove?: (finding: Finding) => void;
}

const LEVELS = {
  fail: { icon: CircleAlert, label: "failure", look: "text-failed" },
  warn: { icon: TriangleAlert, label: "warning", look: "text-blocked" },
  notice: { icon: Info, label: "notice", look: "text-muted" },
} as const;

/** The open findings, the most severe first, and the acknowledged ones, folded. */
export function FindingList({ label, findings, onAcknowledge, onRemove }: FindingListProps) {
  const open = findings.filter(({ acknowledged }) => acknowledged === null);
  const known = findings.filter(({ acknowledged }) => acknowledged !== null);
  return (
    <>
      {open.length > 0 && (
        <ul aria-label={label} className="divide-y">
          {open.map((finding) => (
            <FindingRow key={finding.key} finding={finding} onAcknowledge={onAcknowledge} />
          ))}
        </ul>
      )}
      {known.length > 0 && (
        <details className={classNames(open.length > 0 && "border-t")}>
          <summary className="px-4 py-2 text-[13px] text-muted hover:text-text">
            {formatPlural(known.length, "acknowledged finding")}
          </summary>
          <ul aria-label="Acknowledged" className="divide-y border-t">
            {known.map((finding) => (
              <FindingRow key={finding.key} finding={finding} onRemove={onRemove} />
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

interface FindingRowProps extends Pick<FindingListProps, "onAcknowledge" | "onRemove"> {
  finding: Finding;
}

function FindingRow({ finding, onAcknowledge, onRemove }: FindingRowProps) {
  const { icon: Icon, label, look } = LEVELS[finding.level];
  const target = findingLink(finding);
  const content = (
    <>
      <Icon aria-label={label} className={classNames("mt-0.5 size-4 shrink-0", look)} />
      <span className="min-w-0 flex-1">
        <span className="font-medium break-words">{finding.text}</span>
        <span className="block text-[13px] break-words text-muted">
          <TextWithInlineCode text={toFullSentence(finding.detail)} />
          {finding.since !== null && (
            <>
              {" "}
              Since <RelativeTime at={finding.since} />.
            </>
          )}
        </span>
        {finding.acknowledged !== null && <AcknowledgementNote acknowledged={finding.acknowledged} />}
      </span>
      {target !== null && <ChevronRight aria-hidden className="mt-0.5 size-4 shrink-0 text-muted" />}
    </>
  );
  const frame = "flex min-w-0 flex-1 items-start gap-3 px-4 py-2.5";
  return (
    <li className="flex flex-wrap items-center sm:flex-nowrap">
      {target === null ? (
        <div className={frame}>{content}</div>
      ) : (
        <Link {...target} className={classNames(frame, "hover:bg-sunken")}>
          {content}
        </Link>
      )}
      {onAcknowledge && (
        <Button
          variant="quiet"
          className="mx-2 max-sm:mb-1"
          aria-label={`Acknowledge: ${finding.text}`}
          onClick={() => onAcknowledge(finding)}
        >
          <BellOff aria-hidden className="size-3.5" /> Acknowledge
        </Button>
      )}
      {onRemove && (
        <Button
          variant="quiet"
          className="mx-2 max-sm:mb-1"
          aria-label={`Show again: ${finding.text}`}
          onClick={() => onRemove(finding)}
        >
          Show again
        </Button>
      )}
    </li>
  );
}

/** "Acknowledged by ann 5 min ago, snoozed until 18 Nov 05:00: the partner knows". */
function AcknowledgementNote({ acknowledged }: { acknowledged: NonNullable<Finding["acknowledged"]> }) {
  const { by, at, until, note } = acknowledged;
  return (
    <span className="block text-[13px] break-words text-muted">
      Acknowledged by {by} <RelativeTime at={at} />
      {until !== null && (
        <>
          , snoozed until <AbsoluteTime at={until} />
        </>
      )}
      {note !== "" && `: ${note}`}
    </span>
  );
}
