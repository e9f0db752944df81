import { Page } from "@/components/page";

export function AuditRoute() {
  return <Page title="Audit">Soon.</Page>;
}
