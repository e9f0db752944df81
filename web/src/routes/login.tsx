import { Page } from "@/components/page";

export function LoginRoute() {
  return <Page title="Login">Soon.</Page>;
}
