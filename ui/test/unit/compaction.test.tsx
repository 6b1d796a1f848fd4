import { cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, test } from "vitest";
import type { Compaction } from "../../src/client/client";
import { CompactionDivider } from "../../src/views/agent/CompactionDivider";
import { aStep } from "./records";

afterEach(cleanup);

const MADE: Compaction = {
  reason: "window",
  kind: "summary",
  window: 6000,
  askedTokens: 2400,
  tokensBefore: 4205,
  tokensAfter: 1504,
  steps: 19,
  covered: { taskId: "t", number: 0 },
  coveredAt: 1,
  ties: [],
  trimmed: null,
  resultBytes: 0,
  first: "Count the words.",
  said: ["And the letters."],
  summary: "They counted.",
  card: "How things stand now: nothing is open.",
  notes: "Ann likes tea.",
  files: [],
  unknown: [],
  untrusted: false,
  problem: "",
};

function show(more: Partial<Compaction> = {}, state: "done" | "started" = "done") {
  render(
    <CompactionDivider step={aStep({ kind: "compaction", state, answer: null, compaction: { ...MADE, ...more } })} />,
  );
}

test("a divider says how much shorter the conversation became, and opens with all that stands for it", async () => {
  show();
  expect(screen.getByRole("region", { name: "Made shorter" }).textContent).toContain(
    "4,205 tokens became 1,504 of 6,000",
  );
  expect(screen.queryByText("They counted.")).toBeNull();
  await userEvent.click(screen.getByText("Summary"));
  expect(screen.getByText("They counted.")).toBeTruthy();
  await userEvent.click(screen.getByText("Kept word for word"));
  expect(screen.getByText(/And the letters\./)).toBeTruthy();
  await userEvent.click(screen.getByText("How things stood"));
  expect(screen.getByText(/nothing is open/)).toBeTruthy();
  await userEvent.click(screen.getByText("Its notes"));
  expect(screen.getByText("Ann likes tea.")).toBeTruthy();
});

test("why there is no summary is told", () => {
  show({ kind: "trim", problem: "the summary was empty" });
  expect(screen.getByText("There is no summary, since the summary was empty.")).toBeTruthy();
});

test("one that is under way, and one that came to nothing, are told as such", () => {
  show({ kind: null }, "started");
  expect(screen.getByText("4,205 tokens are being made shorter …")).toBeTruthy();
  cleanup();
  show({ kind: null });
  expect(screen.getByText("4,205 tokens could not be made shorter.")).toBeTruthy();
});
