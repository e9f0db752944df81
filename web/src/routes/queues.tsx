import { Page } from "@/components/page";

export function QueuesRoute() {
  return <Page title="Queues">Soon.</Page>;
}
