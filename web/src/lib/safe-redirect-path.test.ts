import { expect, test } from "vitest";

import { safeRedirectPath } from "@/lib/safe-redirect-path";

test("a page of this application is returned to, with what its URL says", () => {
  expect(safeRedirectPath("/jobs?state=FAILED#x")).toBe("/jobs?state=FAILED#x");
});

test.each([
  "https://evil.example/",
  "//evil.example/",
  "/\\evil.example/",
  "\\\\evil.example",
  "javascript:alert(1)",
  "/\t/evil.example/",
  "http://[",
  "",
])("another place is not gone to: %j", (next) => {
  expect(safeRedirectPath(next)).toBe("/");
});

test("the login does not lead to itself", () => {
  expect(safeRedirectPath("/login?next=/login")).toBe("/");
});

test("without a wish it is the first page", () => {
  expect(safeRedirectPath(undefined)).toBe("/");
});
