import { Page } from "@/components/page";

export function NewJobRoute() {
  return <Page title="NewJob">Soon.</Page>;
}
