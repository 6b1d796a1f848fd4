import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test } from "vitest";
import { SessionsView } from "../../src/shell/SessionsView";
import { usePage } from "../../src/state/page";
import { renderAt, setStage } from "./stage";

const KEPT = { sessionId: "kept", title: "The kept one", owner: "local", createdAt: 1, agents: 3 };
const INFO = { version: "1", principal: "local", model: "m", sandbox: "none", maxFrameBytes: 1, startedAt: 1 };

test("a session is deleted only after a question that says what is lost", async () => {
  const { calls } = setStage([], {
    "session.delete": () => KEPT,
    "session.list": () => ({ sessions: [] }),
    "server.info": () => INFO,
  });
  usePage.setState({ sessions: [KEPT], sessionId: null });
  renderAt("/sessions", <SessionsView />);
  await userEvent.click(screen.getByRole("button", { name: "Delete The kept one" }));
  expect(screen.getByText(/Its 3 agents are stopped/)).toBeTruthy();
  expect(calls).toEqual([]);
  await userEvent.click(screen.getByRole("button", { name: "Delete for good", hidden: true }));
  expect(calls[0]).toEqual({ method: "session.delete", params: { sessionId: "kept" } });
  expect(await screen.findByText("No sessions yet.")).toBeTruthy();
});

test("each session leads to its fleet", () => {
  setStage([]);
  usePage.setState({ sessions: [KEPT], sessionId: null });
  renderAt("/sessions", <SessionsView />);
  expect(screen.getByRole("link", { name: /The kept one/ }).getAttribute("href")).toBe("/s/kept");
});
