import { Page } from "@/components/page";

export function DeadRoute() {
  return <Page title="Dead letters">Soon.</Page>;
}
