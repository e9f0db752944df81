import { ArrowUp } from "lucide-react";

import { PAGE_SIZE } from "@/api/job-list";
import { Button } from "@/components/buttons";
import { formatCount } from "@/lib/format-number";

/** Shows the jobs that have arrived above the list while the user was reading it. */
export function ShowArrivedJobsButton({ count, onShow }: { count: number; onShow: () => void }) {
  return (
    <div className="pointer-events-none fixed inset-x-0 top-14 z-20 flex justify-center md:left-52">
      <Button
        variant="primary"
        className="pointer-events-auto rounded-full shadow-pop"
        onClick={() => {
          onShow();
          window.scrollTo({ top: 0 });
        }}
      >
        <ArrowUp aria-hidden className="size-3.5" />
        {count >= PAGE_SIZE ? `${PAGE_SIZE}+ new` : `${formatCount(count)} new`}
      </Button>
    </div>
  );
}
