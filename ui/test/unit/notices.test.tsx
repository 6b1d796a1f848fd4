import { fireEvent, act as rendering, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { useLocation } from "wouter";
import { ConnectionLostError, RpcError } from "../../src/client/errors";
import { Notices } from "../../src/shell/Notices";
import { act, notify, useNotices } from "../../src/state/actions";
import { renderAt, setStage } from "./stage";

beforeEach(() => {
  vi.useFakeTimers();
  useNotices.setState({ notices: [] });
});
afterEach(() => vi.useRealTimers());

function shown(): string[] {
  return useNotices.getState().notices.map(({ text }) => text);
}

function pass(milliseconds: number) {
  rendering(() => void vi.advanceTimersByTime(milliseconds));
}

test("what was done goes away after some seconds, a problem later", () => {
  renderAt("/s/default", <Notices />);
  rendering(() => {
    notify("Done.");
    notify("It failed.", { isProblem: true });
  });
  pass(7_000);
  expect(shown()).toEqual(["It failed."]);
  pass(9_000);
  expect(shown()).toEqual([]);
});

test("a problem stays while it is read", () => {
  renderAt("/s/default", <Notices />);
  rendering(() => notify("It failed.", { isProblem: true }));
  const line = screen.getByText("It failed.").parentElement as HTMLElement;
  fireEvent.pointerEnter(line);
  pass(60_000);
  expect(shown()).toEqual(["It failed."]);
  fireEvent.pointerLeave(line);
  pass(16_000);
  expect(shown()).toEqual([]);
});

test("a problem does not follow to another place", () => {
  let go: (path: string) => void = () => {};
  function Leaving() {
    go = useLocation()[1];
    return <Notices />;
  }
  renderAt("/s/default", <Leaving />);
  rendering(() => {
    notify("Done.");
    notify("It failed.", { isProblem: true });
  });
  rendering(() => go("/s/default/graph"));
  expect(shown()).toEqual(["Done."]);
});

test("three are shown at most, and the same one once", () => {
  for (const text of ["one", "two", "two", "three", "four"]) notify(text);
  expect(shown()).toEqual(["two", "three", "four"]);
});

test.each([
  [new ConnectionLostError("The connection was lost.", false), true],
  [new RpcError(-32_000, "Too many requests.", { code: "too_many_requests" }), true],
  [new RpcError(-32_602, "The thread is too long.", { code: "invalid_input" }), false],
])("to try again is offered only for what may pass: %s", async (error, isOffered) => {
  setStage([], {
    "task.retry": () => {
      throw error;
    },
  });
  await act("task.retry", { taskId: "t" });
  expect(useNotices.getState().notices.map(({ retry }) => retry !== null)).toEqual([isOffered]);
});
