import { Link } from "@tanstack/react-router";
import { LockKeyhole } from "lucide-react";

import type { Lock } from "@/api/locks";
import { JobLink } from "@/components/job-links";
import { Duration } from "@/components/relative-time-and-duration";
import { formatCount, formatPlural } from "@/lib/format-number";

/** The locks: the holder of each, and the waiting jobs in order. */
export function LockList({ locks }: { locks: readonly Lock[] }) {
  return (
    <ul aria-label="Locks" className="flex flex-col gap-3">
      {locks.map((lock) => (
        <li key={`${lock.queue} ${lock.name}`} className="rounded-lg border bg-surface px-4 py-3">
          <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
            <LockKeyhole aria-hidden className="size-4 text-muted" />
            <h2 className="min-w-0 font-semibold break-all">{lock.name}</h2>
            <Link to="/queues" search={{ text: lock.queue }} className="link text-xs text-muted">
              {lock.queue}
            </Link>
            <span className="tabular-nums ml-auto text-[13px] text-muted">
              {lock.waiting === 0 ? "no jobs waiting" : `${formatPlural(lock.waiting, "job")} waiting`}
            </span>
          </div>
          <dl className="mt-2 grid gap-x-4 gap-y-1 sm:grid-cols-[5rem_1fr]">
            <dt className="text-xs leading-5 text-muted">Held by</dt>
            <dd className="flex flex-wrap items-baseline gap-x-3">
              {lock.holder === "" ? (
                <span className="text-muted">not held right now</span>
              ) : (
                <>
                  <JobLink id={lock.holder} />
                  {lock.since !== null && (
                    <span className="text-[13px] text-muted">
                      for <Duration from={lock.since} />
                    </span>
                  )}
                </>
              )}
            </dd>
            {lock.waiting > 0 && (
              <>
                <dt className="text-xs leading-5 text-muted">Waiting</dt>
                <dd>
                  <ol className="flex flex-col gap-0.5">
                    {lock.waiters.map((waiter) => (
                      <li key={waiter}>
                        <JobLink id={waiter} />
                      </li>
                    ))}
                  </ol>
                  {lock.waiting > lock.waiters.length && (
                    <p className="text-xs text-muted">and {formatCount(lock.waiting - lock.waiters.length)} more</p>
                  )}
                </dd>
              </>
            )}
          </dl>
        </li>
      ))}
    </ul>
  );
}
