import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import { JsonViewer } from "@/components/json/json-viewer";

it("shows every digit of a large number", () => {
  render(<JsonViewer label="Payload" source='{"id":9007199254740993}' />);
  expect(screen.getByText("9007199254740993")).toBeVisible();
});

it("folds and unfolds a branch", async () => {
  render(<JsonViewer label="Payload" source='{"user":{"name":"Ada"}}' />);
  expect(screen.getByText('"Ada"')).toBeVisible();
  await userEvent.click(screen.getAllByRole("button", { name: "Collapse 1 key" })[1] as HTMLElement);
  expect(screen.queryByText('"Ada"')).toBeNull();
  await userEvent.click(screen.getByRole("button", { name: "Expand 1 key" }));
  expect(screen.getByText('"Ada"')).toBeVisible();
});

it("draws what is huge only when asked for", async () => {
  render(<JsonViewer label="Payload" source={JSON.stringify({ text: "x".repeat(200_000) })} />);
  expect(screen.getByText(/200.0 kB/)).toBeVisible();
  await userEvent.click(screen.getByRole("button", { name: "Show" }));
  expect(screen.getByText('"text"')).toBeVisible();
});

it("shows what is no JSON as it is", () => {
  render(<JsonViewer label="Result" source="<script>alert(1)</script>" />);
  expect(screen.getByText("<script>alert(1)</script>")).toBeVisible();
});
