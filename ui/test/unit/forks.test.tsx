import { act, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, test } from "vitest";
import type { AgentDefinition, AgentDetails, ForkReport, Notification } from "../../src/client/client";
import { RpcError } from "../../src/client/client";
import { Dialogs } from "../../src/shell/Dialogs";
import { closeDialog } from "../../src/shell/dialogState";
import { ForkButton } from "../../src/shell/ForkButton";
import { Past } from "../../src/shell/Past";
import { useNotices } from "../../src/state/actions";
import { usePage } from "../../src/state/page";
import { backToLive } from "../../src/state/playhead";
import { changesOf, formOf } from "../../src/steer/definition";
import { entryOf, type ForkForm, forkParams } from "../../src/steer/fork";
import { note, renderAt, setStage } from "./stage";

beforeEach(() => {
  closeDialog();
  backToLive();
});

const DEFINITION: AgentDefinition = {
  name: "Writer",
  description: "Writes",
  prompt: "You write.\n",
  model: ["openai:a", "anthropic:b"],
  tools: ["send_mail"],
};
const FORM: ForkForm = { at: "12", effects: "ask", name: "", runs: "1", agents: new Map() };

test("a definition that was only looked at is not changed", () => {
  expect(changesOf(formOf(DEFINITION), DEFINITION)).toEqual({});
  expect(changesOf(formOf({}), {})).toEqual({});
  expect(changesOf(formOf({ model: "inherit" }), { model: "inherit" })).toEqual({});
});

test("only the fields that were changed are sent, and one that was emptied is as if nobody had stated it", () => {
  const form = formOf(DEFINITION);
  expect(form.model).toBe("openai:a, anthropic:b");
  expect(changesOf({ ...form, prompt: "You write well.", model: "" }, DEFINITION)).toEqual({
    prompt: "You write well.",
    model: "inherit",
  });
  expect(changesOf({ ...form, isToolsChosen: false, description: " " }, DEFINITION)).toEqual({
    description: "",
    tools: null,
  });
  const tools = { ...form, tools: new Set(["send_mail", "sleep"]), otherTools: "mcp_a" };
  expect(changesOf(tools, DEFINITION)).toEqual({ tools: ["send_mail", "sleep", "mcp_a"] });
});

test("what is asked names each field by its agent, whose id may have dots", () => {
  const form = { ...formOf(DEFINITION), prompt: "Be brief." };
  const agents = new Map([
    ["the.writer", { definition: DEFINITION, form }],
    ["reader", null],
  ]);
  expect(forkParams({ ...FORM, agents, name: " other ", runs: "5", effects: "recorded" })).toEqual({
    at: 12,
    effects: "recorded",
    set: { "the.writer.prompt": "Be brief." },
    newSessionId: "other",
    runs: 5,
  });
  expect(forkParams(FORM)).toEqual({ at: 12, effects: "ask", set: {}, runs: 1 });
});

test.each(["", "0", "-1", "1.5", "x", "12 3"])("'%s' is no entry, and no number of forks", (text) => {
  expect(entryOf(text)).toBeNull();
  expect(forkParams({ ...FORM, at: text })).toBe("Write the number of an entry of the log, 1 or more.");
  expect(forkParams({ ...FORM, runs: text })).toBe("There can be 1 to 100 forks at once.");
});

test("more than a hundred forks at once are not asked for", () => {
  expect(forkParams({ ...FORM, runs: "101" })).toBe("There can be 1 to 100 forks at once.");
});

const REPORT: ForkReport = {
  sessionId: "default",
  at: 3,
  sessionIds: ["default-fork-3-1", "default-fork-3-2"],
  effects: "ask",
  recordedCalls: 0,
};

interface Refusals {
  /** What the server answers with once it is made. */
  made?: Promise<ForkReport>;
  /** What the server says to the first wish for a fork. */
  first?: Error;
  points?: (near: number) => number[];
}

/** A session with a writer, of which five entries are in the log. */
function session({ made, first, points = (near) => [near] }: Refusals = {}) {
  const notes: Notification[] = Array.from({ length: 5 }, (_, index) => ({
    ...note("agent.created", { agentId: index === 0 ? "writer" : `other${index}`, name: "", description: "" }),
    seq: index + 1,
  }));
  let refusal = first;
  return setStage(notes, {
    "events.list": ({ after = 0, limit = 1_000 }) => ({
      notifications: notes.slice(after, after + limit),
      lastSeq: notes.length,
    }),
    "session.forkPoints": ({ near }) => ({ points: points(near) }),
    "agent.get": () => ({ definition: DEFINITION }) as AgentDetails,
    "tool.list": () => ({ tools: [] }) as never,
    "session.fork": () => {
      const error = refusal;
      refusal = undefined;
      if (error) throw error;
      return (made ?? REPORT) as ForkReport;
    },
    "session.list": () => ({ sessions: [] }),
    "server.info": () => ({}) as never,
  });
}

const forks = ({ calls }: ReturnType<typeof session>) =>
  calls.filter(({ method }) => method === "session.fork").map(({ params }) => params);
const button = (name: string | RegExp) => screen.getByRole("button", { name, hidden: true });

async function open(at: number) {
  renderAt("/s/default", [<ForkButton key="button" at={at} />, <Dialogs key="dialogs" />]);
  await userEvent.click(screen.getByRole("button", { name: "Fork from here" }));
  return screen.findByLabelText("After entry");
}

test("a session is forked with an agent that is told otherwise, and the ways to the forks are shown", async () => {
  const stage = session();
  const entry = (await open(3)) as HTMLInputElement;
  expect(entry.value).toBe("3");
  await userEvent.click(screen.getByText("Change what agents are"));
  await userEvent.click(screen.getByRole("checkbox", { name: /writer/, hidden: true }));
  const prompt = (await screen.findByLabelText("Prompt")) as HTMLTextAreaElement;
  expect(prompt.value).toBe("You write.\n");
  await userEvent.clear(prompt);
  await userEvent.type(prompt, "You write well.");
  await userEvent.click(screen.getByRole("radio", { name: /Recorded/, hidden: true }));
  await userEvent.clear(screen.getByLabelText("How many forks"));
  await userEvent.type(screen.getByLabelText("How many forks"), "2");
  await userEvent.click(button("Fork"));
  const ways = await screen.findAllByRole("link", { name: "Compare", hidden: true });
  expect(ways.map((way) => way.getAttribute("href"))).toEqual([
    "/s/default/compare/default-fork-3-1",
    "/s/default/compare/default-fork-3-2",
  ]);
  const [first] = screen.getAllByRole("link", { name: "Open", hidden: true });
  expect(first?.getAttribute("href")).toBe("/s/default-fork-3-1");
  expect(forks(stage)).toEqual([
    { sessionId: "default", at: 3, effects: "recorded", set: { "writer.prompt": "You write well." }, runs: 2 },
  ]);
});

test("why the server refuses is told in the dialog, and what was filled in stays", async () => {
  const refused = new RpcError(-32000, "There is a session 'taken' already.", { code: "duplicate_id" });
  const stage = session({ first: refused });
  await open(3);
  await userEvent.type(screen.getByLabelText("Id of the new session"), "taken");
  await userEvent.click(button("Fork"));
  expect(await screen.findByText("There is a session 'taken' already.")).toBeTruthy();
  expect((screen.getByLabelText("Id of the new session") as HTMLInputElement).value).toBe("taken");
  await userEvent.type(screen.getByLabelText("Id of the new session"), "2");
  expect(screen.queryByText("There is a session 'taken' already.")).toBeNull();
  await userEvent.click(button("Fork"));
  expect(await screen.findByText("default-fork-3-1")).toBeTruthy();
  expect(forks(stage).map(({ newSessionId }) => newSessionId)).toEqual(["taken", "taken2"]);
});

test("an entry in the middle of a step is told of, and one of the nearest that work is taken by a click", async () => {
  session({ points: (near) => (near === 3 ? [2, 4] : [near]) });
  const entry = (await open(3)) as HTMLInputElement;
  const told = await screen.findByText(/in the middle of a step/);
  expect(
    within(told)
      .getAllByRole("button", { hidden: true })
      .map(({ textContent }) => textContent),
  ).toEqual(["2", "4"]);
  await userEvent.click(button("4"));
  expect(entry.value).toBe("4");
  await waitFor(() => expect(screen.queryByText(/in the middle of a step/)).toBeNull());
});

test("near what cannot be played again, such as a log that was pruned, no entry is offered", async () => {
  session({ points: () => [] });
  await open(3);
  expect(await screen.findByText(/cannot be forked near this entry/)).toBeTruthy();
});

test("from the bar of time travel the moment that is shown is forked, while nothing else can be done", async () => {
  const stage = session();
  renderAt("/s/default?at=2", [<Past key="past" />, <Dialogs key="dialogs" />]);
  await userEvent.click(await screen.findByRole("button", { name: "Fork from here" }));
  expect(((await screen.findByLabelText("After entry")) as HTMLInputElement).value).toBe("2");
  await userEvent.click(button("Fork"));
  await screen.findByText("default-fork-3-1");
  expect(forks(stage)).toMatchObject([{ at: 2 }]);
});

test("whoever closes the dialog while the fork is made is told when it is there", async () => {
  let end = (_: ForkReport) => {};
  const made = new Promise<ForkReport>((resolve) => {
    end = resolve;
  });
  session({ made });
  await open(3);
  await userEvent.click(button("Fork"));
  expect(await screen.findByText(/^The session is played up to there/)).toBeTruthy();
  await userEvent.click(button("Cancel"));
  expect(screen.queryByLabelText("After entry")).toBeNull();
  await act(async () => end(REPORT));
  expect(useNotices.getState().notices.map(({ text }) => text)).toEqual([
    "Forked default as default-fork-3-1, default-fork-3-2.",
  ]);
});

test("without a connection nothing is forked, and the button says why", () => {
  session();
  usePage.setState({ connection: "lost" });
  renderAt("/s/default", <ForkButton at={3} />);
  const off = screen.getByRole("button", { name: "Fork from here" }) as HTMLButtonElement;
  expect(off.disabled).toBe(true);
  expect(off.title).toBe("There is no connection to the server.");
});
