import { Page } from "@/components/page";

export function JobRoute() {
  return <Page title="Job">Soon.</Page>;
}
