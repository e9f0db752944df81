import { Page } from "@/components/page";

export function LocksRoute() {
  return <Page title="Locks">Soon.</Page>;
}
