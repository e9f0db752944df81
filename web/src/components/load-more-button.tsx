import { Button } from "@/components/buttons";

/** Loads the next page of a list. */
export function LoadMoreButton({ hasMore, isBusy, onMore }: { hasMore: boolean; isBusy: boolean; onMore: () => void }) {
  if (!hasMore) return null;
  return (
    <div className="flex justify-center py-2">
      <Button onClick={onMore} isBusy={isBusy}>
        Show more
      </Button>
    </div>
  );
}
