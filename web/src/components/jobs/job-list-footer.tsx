import { Button } from "@/components/buttons";
import { formatPlural } from "@/lib/format-number";
import type { LiveJobList } from "@/live/use-live-job-list";

/** Below the last row: an error, how far a text search has come, or the number of jobs. */
export function JobListFooter({ list, isTextSearch }: { list: LiveJobList; isTextSearch: boolean }) {
  if (list.error !== null && list.rows.length > 0) {
    return (
      <p role="alert" className="flex items-center gap-3 p-4 text-failed">
        {list.error.message} <Button onClick={list.retry}>Try again</Button>
      </p>
    );
  }
  if (list.isLoading) return null;
  if (isTextSearch) {
    return (
      <div role="status" className="tabular-nums flex flex-wrap items-center justify-center gap-3 p-4 text-muted">
        {formatPlural(list.rows.length, "match", "matches")} in {formatPlural(list.examined, "record")} searched
        {list.hasMore && (
          <Button isBusy={list.isLoadingMore} onClick={list.more}>
            Search more
          </Button>
        )}
      </div>
    );
  }
  if (list.hasMore) return <p className="p-4 text-center text-muted">{list.isLoadingMore ? "Loading more…" : ""}</p>;
  if (list.rows.length === 0) return null;
  return <p className="tabular-nums p-3 text-center text-xs text-muted">{formatPlural(list.rows.length, "job")}</p>;
}
