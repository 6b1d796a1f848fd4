import { screen, act as settled } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, test } from "vitest";
import { ConnectionLostError } from "../../src/client/errors";
import { Dialogs } from "../../src/shell/Dialogs";
import { closeDialog, useDialogs } from "../../src/shell/dialogState";
import { Notices } from "../../src/shell/Notices";
import { act, useNotices } from "../../src/state/actions";
import { usePage } from "../../src/state/page";
import { perform, steer } from "../../src/steer/bulk";
import { renderAt, setStage } from "./stage";

afterEach(() => {
  closeDialog();
  useNotices.setState({ notices: [] });
});

function failing(): never {
  throw new ConnectionLostError("It did not work.", true);
}

/** The user goes to another session, or its place is taken by another one. */
function show(page: { sessionId?: string; createdAt?: number }): void {
  settled(() => usePage.setState(page));
}

describe("when another session is shown", () => {
  test("a question about the one before is not asked any more", async () => {
    const { calls } = setStage([]);
    renderAt("/s/default", <Dialogs />);
    settled(() => steer("stop", ["bob"]));
    expect(await screen.findByRole("button", { name: "Stop", hidden: true })).toBeTruthy();
    show({ sessionId: "other" });
    expect(screen.queryByRole("dialog", { hidden: true })).toBeNull();
    expect(calls).toEqual([]);
  });

  test("also one that has taken the id of the one before", () => {
    setStage([]);
    show({ createdAt: 5 });
    steer("stop", ["bob"]);
    show({ createdAt: 6 });
    expect(useDialogs.getState().open).toBeNull();
  });

  test("what failed in the one before is not offered again", async () => {
    setStage([], { "async.wakeAgent": failing });
    renderAt("/s/default", <Notices />);
    await settled(() => act("async.wakeAgent", { agentId: "bob" }));
    expect(screen.getByText("It did not work.")).toBeTruthy();
    show({ sessionId: "other" });
    expect(screen.queryByText("It did not work.")).toBeNull();
  });

  test("what fails only then is tried again in the session it was meant for", async () => {
    const { calls } = setStage([], { "async.wakeAgent": failing });
    renderAt("/s/default", <Notices />);
    const underWay = act("async.wakeAgent", { agentId: "bob" });
    show({ sessionId: "other" });
    await settled(() => underWay);
    await userEvent.click(screen.getByRole("button", { name: "Try again" }));
    expect(calls.map(({ params }) => params.sessionId)).toEqual(["default", "default"]);
  });

  test("how something ended is told with the name of its session, and nothing is asked", async () => {
    setStage([], { "async.stopAgent": failing });
    const underWay = perform("stop", ["ann", "bob"], {});
    show({ sessionId: "other" });
    await underWay;
    expect(useDialogs.getState().open).toBeNull();
    expect(useNotices.getState().notices.map(({ text, retry }) => [text, retry])).toEqual([
      ["In the session default: Stopped 0 agents. It was not done to 2 of them. It did not work.", null],
    ]);
  });
});
