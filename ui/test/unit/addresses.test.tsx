import { fireEvent, render, screen, act as settled } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, test, vi } from "vitest";
import { App } from "../../src/shell/App";
import { addressOf, partsOf, placeOf, useLeading, useSelection } from "../../src/shell/addresses";
import { Boundary } from "../../src/shell/Boundary";
import { closeDialog, openDialog } from "../../src/shell/dialogState";
import { usePage } from "../../src/state/page";
import { note, renderAt, setStage } from "./stage";

const ODD = [
  "100%",
  "50%25",
  "%41",
  "a b",
  "é",
  "a*b",
  "(x",
  "a/b",
  "a?b#c",
  "a:b",
  "a+b",
  ":x",
  ".",
  "..",
  "~",
  "~..",
];

describe("an address", () => {
  test.each(ODD)("leads back to the ids that it was made of, also to %s", (id) => {
    const { pathname } = new URL(addressOf(id, "chats", id), "http://page");
    expect(placeOf(pathname)).toEqual({ sessionId: id, view: "chats", item: id, isTooLong: false });
  });

  test("that was typed with a percent sign means what it says", () => {
    expect(partsOf("/s/100%")).toEqual(["s", "100%"]);
  });
});

describe("the page", () => {
  test.each(ODD)("shows the chat %s of a session of that id, and where one is", async (id) => {
    const room = { roomId: id, title: `Room ${id}`, kind: "group" as const, members: ["a"], hopLimit: 4 };
    setStage([note("room.created", room)]);
    usePage.setState({ sessionId: id });
    renderAt(addressOf(id, "chats", id), <App />);
    expect(await screen.findByRole("heading", { name: `Room ${id}` })).toBeTruthy();
    const here = screen.getAllByRole("link", { current: "page" }).map((link) => link.textContent);
    expect(here.filter((text) => text?.startsWith("Chats"))).toHaveLength(1);
    expect(usePage.getState().sessionId).toBe(id);
  });

  test("gets over a mistake in one view when another place is gone to", () => {
    const hush = vi.spyOn(console, "error").mockImplementation(() => {});
    function Broken(): never {
      throw new Error("This view has a mistake.");
    }
    const { rerender } = render(
      <Boundary place="/s/default/log">
        <Broken />
      </Boundary>,
    );
    expect(screen.getByText("This view has a mistake.")).toBeTruthy();
    rerender(<Boundary place="/s/default/locks">All is well.</Boundary>);
    expect(screen.getByText("All is well.")).toBeTruthy();
    hush.mockRestore();
  });

  test("has its places in a menu on a phone, which Escape closes", () => {
    setStage([]);
    renderAt("/s/default/locks", <App />);
    const button = screen.getByRole("button", { name: "Places" });
    fireEvent.click(button);
    expect(button.getAttribute("aria-expanded")).toBe("true");
    fireEvent.keyDown(document.body, { key: "Escape" });
    expect(button.getAttribute("aria-expanded")).toBe("false");
  });

  test("leaves Escape to a dialog that is over the menu", () => {
    setStage([]);
    renderAt("/s/default/locks", <App />);
    fireEvent.click(screen.getByRole("button", { name: "Places" }));
    openDialog({ kind: "palette" });
    expect(fireEvent.keyDown(document.body, { key: "Escape" })).toBe(true);
    closeDialog();
  });

  test("names the window after what it shows", () => {
    setStage([note("agent.created", { agentId: "ann", name: "Ann", description: "" })]);
    const { unmount } = renderAt("/s/default/agents/ann", <App />);
    expect(document.title).toBe("Ann – AI Whisperer");
    settled(() => history.pushState(null, "", "/s/default/locks"));
    expect(document.title).toBe("Locks – AI Whisperer");
    unmount();
    expect(document.title).toBe("AI Whisperer");
  });

  test("says so where there is nothing", async () => {
    setStage([]);
    renderAt("/s/default/locks/a/b", <App />);
    expect(await screen.findByText(/nothing at this address/)).toBeTruthy();
  });
});

function Making({ made }: { made: Promise<string> }) {
  const lead = useLeading();
  return (
    <button type="button" onClick={() => void made.then(lead)}>
      Make
    </button>
  );
}

describe("what is made on the server", () => {
  test.each([
    ["leads to it whoever waits for it", true, ["/s/default/log", "/s/default/chats/new"]],
    ["leads nobody away who has gone elsewhere meanwhile", false, ["/s/default/log"]],
  ] as const)("%s", async (_, isThere, places) => {
    let done = (_: string) => {};
    const made = new Promise<string>((resolve) => {
      done = resolve;
    });
    const { history, unmount } = renderAt("/s/default/log", <Making made={made} />);
    await userEvent.click(screen.getByRole("button", { name: "Make" }));
    if (!isThere) unmount();
    await settled(async () => done("/s/default/chats/new"));
    expect(history).toEqual(places);
  });
});

function Choosing() {
  const [first, setFirst] = useSelection("first");
  const [, setSecond] = useSelection("second", "none");
  const both = () => {
    setFirst("50%25 & more");
    setSecond("none");
  };
  return (
    <>
      <p>{first}</p>
      <button type="button" onClick={both}>
        Both
      </button>
    </>
  );
}

describe("a selection", () => {
  test("stays beside another that is made at the same moment, and keeps the path as it is", async () => {
    const { history } = renderAt("/s/100%25/log?second=two&at=3", <Choosing />);
    await userEvent.click(screen.getByRole("button", { name: "Both" }));
    expect(history).toEqual(["/s/100%25/log?at=3&first=50%2525+%26+more"]);
    expect(screen.getByText("50%25 & more")).toBeTruthy();
  });
});
