import { Page } from "@/components/page";

export function SchedulesRoute() {
  return <Page title="Schedules">Soon.</Page>;
}
