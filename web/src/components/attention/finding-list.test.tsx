import { screen } from "@testing-library/react";
import { expect, it } from "vitest";

import { FindingList } from "@/components/attention/finding-list";
import { VerdictLine } from "@/components/attention/verdict-line";
import { aFinding, at } from "@/test/factories";
import { renderWithRouter } from "@/test/render-with-router";

it("leads from a slow queue to its page", async () => {
  renderWithRouter(<FindingList label="Needs attention" findings={[aFinding({ queue: "mail" })]} />);

  const row = await screen.findByRole("link", { name: /mail 30 × slower than usual/ });
  expect(row).toHaveAttribute("href", "/queues/mail");
  expect(row).toHaveTextContent("Send_mail takes 3.5 s on average.");
});

it("folds what has been acknowledged, with the note", async () => {
  const acknowledged = { by: "ann", at: at(0), until: null, note: "the partner knows" };
  renderWithRouter(
    <FindingList label="Needs attention" findings={[aFinding({ acknowledged }), aFinding({ key: "other" })]} />,
  );

  expect(await screen.findByText("1 acknowledged finding")).toBeVisible();
  expect(screen.getByText(/Acknowledged by ann/)).toHaveTextContent("the partner knows");
  expect(screen.getByRole("list", { name: "Needs attention" }).children).toHaveLength(1);
});

it("has no link for the store", async () => {
  renderWithRouter(<FindingList label="Needs attention" findings={[aFinding({ kind: "server", level: "notice" })]} />);

  expect(await screen.findByLabelText("notice")).toBeVisible();
  expect(screen.queryByRole("link")).toBeNull();
});

it("shows the verdict as a sentence", async () => {
  renderWithRouter(<VerdictLine verdict={{ level: "warn", text: "Degraded: mail 30 × slower than usual" }} />);

  expect(await screen.findByRole("status", { name: "Verdict" })).toHaveTextContent(
    "Degraded: mail 30 × slower than usual.",
  );
});
