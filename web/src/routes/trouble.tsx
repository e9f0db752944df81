/** What is shown in place of a page that does not exist, or could not be shown. */

import { Link, useRouter, type ErrorComponentProps } from "@tanstack/react-router";

import { Button } from "@/components/button";
import { Empty, Failure } from "@/components/looks";

export function NotFound() {
  return (
    <Empty
      title="There is no such page"
      action={
        <Button asChild>
          <Link to="/">Overview</Link>
        </Button>
      }
    />
  );
}

export function Trouble({ error, reset }: ErrorComponentProps) {
  const router = useRouter();
  return (
    <main className="mx-auto max-w-2xl pt-16">
      <Failure
        error={error}
        onRetry={() => {
          reset();
          void router.invalidate();
        }}
      />
    </main>
  );
}
