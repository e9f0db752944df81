import { Page } from "@/components/page";

export function WorkflowRoute() {
  return <Page title="Workflow">Soon.</Page>;
}
