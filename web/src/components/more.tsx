import { Button } from "@/components/button";

/** There is more than is shown. */
export function More({ hasMore, isBusy, onMore }: { hasMore: boolean; isBusy: boolean; onMore: () => void }) {
  if (!hasMore) return null;
  return (
    <div className="flex justify-center py-2">
      <Button onClick={onMore} isBusy={isBusy}>
        Show more
      </Button>
    </div>
  );
}
