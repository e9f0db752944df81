import { Page } from "@/components/page";

export function OverviewRoute() {
  return <Page title="Overview">Soon.</Page>;
}
