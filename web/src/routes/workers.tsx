import { Page } from "@/components/page";

export function WorkersRoute() {
  return <Page title="Workers">Soon.</Page>;
}
