import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { expect, it } from "vitest";

import { JobFilterBar } from "@/components/jobs/job-filter-bar";
import { toFilter, type Token } from "@/lib/job-filter";
import { type SuggestionSource } from "@/lib/job-filter-suggestions";

const KNOWN: SuggestionSource = {
  queues: ["mail", "reports"],
  tasks: [],
  workers: [],
  errors: [],
  tags: [],
  fields: ["user_id"],
};

function Bar() {
  const [tokens, setTokens] = useState<readonly Token[]>([]);
  return (
    <>
      <JobFilterBar tokens={tokens} known={KNOWN} onChange={setTokens} />
      <output>{JSON.stringify(toFilter(tokens))}</output>
    </>
  );
}

function shown(): unknown {
  return JSON.parse(screen.getByRole("status").textContent);
}

it("takes what is typed, condition by condition", async () => {
  render(<Bar />);
  await userEvent.type(screen.getByRole("combobox"), "state:failed queue:mail disk full{Enter}");
  expect(shown()).toEqual({ state: "FAILED", queue: "mail", text: "disk full" });
});

it("is driven by the keyboard alone", async () => {
  render(<Bar />);
  await userEvent.tab();
  await userEvent.keyboard("qu{ArrowDown}{Enter}");
  expect(screen.getByRole("combobox")).toHaveValue("queue:");
  await userEvent.keyboard("{ArrowDown}{ArrowDown}{Enter}");
  expect(shown()).toEqual({ queue: "reports" });
});

it("gives the last condition back for editing", async () => {
  render(<Bar />);
  await userEvent.type(screen.getByRole("combobox"), "queue:mail {Backspace}");
  expect(screen.getByRole("combobox")).toHaveValue("queue:mail");
  expect(shown()).toEqual({});
});

it("says what makes no sense, and keeps it for mending", async () => {
  render(<Bar />);
  await userEvent.type(screen.getByRole("combobox"), "state:nowhere{Enter}");
  expect(screen.getByRole("alert")).toHaveTextContent("Unknown state “nowhere”");
  expect(screen.getByRole("combobox")).toHaveValue("state:nowhere");
});

it("lets go of a condition with a click", async () => {
  render(<Bar />);
  await userEvent.type(screen.getByRole("combobox"), "queue:mail ");
  await userEvent.click(screen.getByRole("button", { name: "Remove queue:mail" }));
  expect(shown()).toEqual({});
});
