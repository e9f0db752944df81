import { Link } from "@tanstack/react-router";

import type { AuditEntry } from "@/api/audit-log";
import { diffValues } from "@/components/audit/diff-values";
import { Badge } from "@/components/badges";
import { RelativeTime } from "@/components/relative-time-and-duration";

/** The entries of the audit log, newest first. */
export function AuditList({ entries }: { entries: readonly AuditEntry[] }) {
  return (
    <ul aria-label="Changes" className="divide-y rounded-lg border bg-surface">
      {entries.map((entry) => (
        <li key={entry.id} className="grid gap-x-4 gap-y-1 px-4 py-2.5 sm:grid-cols-[6rem_12rem_1fr]">
          <span className="text-[13px] text-muted">
            <RelativeTime at={entry.at} />
          </span>
          <span className="min-w-0 text-[13px] break-words">
            {entry.who} {entry.role !== null && <span className="text-muted">({entry.role})</span>}
            {entry.source !== null && <span className="block text-xs text-muted">from {entry.source}</span>}
          </span>
          <div className="min-w-0">
            <p className="flex flex-wrap items-center gap-x-2 gap-y-1">
              <Badge>{entry.action}</Badge>
              <Target text={entry.target} />
            </p>
            <ChangedValues entry={entry} />
          </div>
        </li>
      ))}
    </ul>
  );
}

/** "queue mail", "job mail:1": a link where there is a page for it. */
function Target({ text }: { text: string }) {
  const [kind, ...rest] = text.split(" ");
  const name = rest.join(" ");
  const look = "link min-w-0 text-[13px] break-all";
  switch (kind) {
    case "job":
      return (
        <Link to="/jobs/$id" params={{ id: name }} className={look}>
          {text}
        </Link>
      );
    case "workflow":
      return (
        <Link to="/workflows/$id" params={{ id: name }} className={look}>
          {text}
        </Link>
      );
    case "queue":
      return (
        <Link to="/queues" search={{ text: name }} className={look}>
          {text}
        </Link>
      );
    case "schedule":
      return (
        <Link to="/schedules" search={{ text: name }} className={look}>
          {text}
        </Link>
      );
    case "autoscaler":
      return (
        <Link to="/scaling" className={look}>
          {text}
        </Link>
      );
    default:
      return <span className="min-w-0 text-[13px] break-all">{text}</span>;
  }
}

function ChangedValues({ entry }: { entry: AuditEntry }) {
  const changed = diffValues(entry.before, entry.after);
  // An action without a previous state, such as a bulk operation, has parameters, not changes.
  const isChange = entry.before !== null;
  if (changed.length === 0) return null;
  return (
    <dl className="mt-1 grid grid-cols-[auto_1fr] gap-x-3 gap-y-0.5 font-mono text-xs">
      {changed.map((one) => (
        <div key={one.name} className="contents">
          <dt className="text-muted">{one.name.replaceAll("_", " ")}</dt>
          <dd className="min-w-0 break-all">
            {one.before !== null && (
              <del className="rounded-sm bg-failed-soft px-1 text-failed no-underline">
                <span className="sr-only">before </span>
                {one.before}
              </del>
            )}
            {one.before !== null && one.after !== null && <span className="px-1 text-muted">→</span>}
            {one.after !== null && !isChange && <span>{one.after}</span>}
            {one.after !== null && isChange && (
              <ins className="rounded-sm bg-completed-soft px-1 text-completed no-underline">
                <span className="sr-only">after </span>
                {one.after}
              </ins>
            )}
          </dd>
        </div>
      ))}
    </dl>
  );
}
