import { Page } from "@/components/page";

export function WorkflowsRoute() {
  return <Page title="Workflows">Soon.</Page>;
}
