import { screen } from "@testing-library/react";
import { expect, it } from "vitest";

import type { AuditEntry } from "@/api/audit-log";
import { AuditList } from "@/components/audit/audit-list";
import { at } from "@/test/factories";
import { renderWithRouter } from "@/test/render-with-router";

function anEntry(fields: Partial<AuditEntry>): AuditEntry {
  return {
    id: "1",
    at: at(0),
    who: "ada",
    role: "admin",
    source: null,
    action: "x",
    target: "x",
    before: null,
    after: null,
    ...fields,
  };
}

it("shows a changed value with the previous one", async () => {
  renderWithRouter(<AuditList entries={[anEntry({ before: { is_paused: false }, after: { is_paused: true } })]} />);

  expect(await screen.findByRole("deletion")).toHaveTextContent("false");
  expect(screen.getByRole("insertion")).toHaveTextContent("true");
});

it("shows where a change came from, and no role for a failed login", async () => {
  const failed = anEntry({ who: "unknown", role: null, source: "203.0.113.7", action: "login_failed" });
  renderWithRouter(<AuditList entries={[failed]} />);

  expect(await screen.findByText("from 203.0.113.7")).toBeVisible();
  expect(screen.queryByText(/\(/)).toBeNull();
});

it("shows the filter of a bulk operation as neither removed nor added", async () => {
  const where = { state: "pending" };
  renderWithRouter(<AuditList entries={[anEntry({ action: "cancel", target: "operation a", after: { where } })]} />);

  expect(await screen.findByText('{"state":"pending"}')).toBeVisible();
  expect(screen.queryByRole("deletion")).toBeNull();
  expect(screen.queryByRole("insertion")).toBeNull();
});
