import { Page } from "@/components/page";

export function JobsRoute() {
  return <Page title="Jobs">Soon.</Page>;
}
