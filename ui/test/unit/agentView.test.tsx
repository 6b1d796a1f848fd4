import { cleanup, screen, act as settle, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, test } from "vitest";
import { Route } from "wouter";
import type { Notification, ServerInfo } from "../../src/client/client";
import { reduce } from "../../src/projection/reduce";
import { tell, usePage } from "../../src/state/page";
import { NOTHING_WRITTEN } from "../../src/state/streams";
import AgentView from "../../src/views/agent/AgentView";
import { aMail, anOrigin, aStep, aTask, NOTHING_USED } from "./records";
import { note, renderAt, setStage } from "./stage";

afterEach(cleanup);

type Answers = NonNullable<Parameters<typeof setStage>[1]>;

const BEGUN = [
  note("agent.created", { agentId: "alice", name: "Alice", description: "Counts words." }),
  note("agent.started", { agentId: "alice", reason: "" }),
  note("agent.created", { agentId: "bob", name: "Bob", description: "" }),
];

function show(query: string, answers: Answers = {}, more: readonly Notification[] = []) {
  const stage = setStage([...BEGUN, ...more], {
    "task.list": () => ({ tasks: [] }),
    "task.tree": () => ({ tasks: [] }),
    "task.steps": () => ({ steps: [] }),
    "task.threads": () => ({ threads: [] }),
    "usage.get": () => ({ agents: {}, total: { tasks: 0, usage: NOTHING_USED, mailsReceived: 0, contextBytes: 0 } }),
    "limits.get": () => ({ scope: "agent", agentId: "alice", limits: [] }),
    "schedule.list": () => ({ schedules: [] }),
    ...answers,
  });
  const page = <Route path="/s/default/agents/:agentId" component={AgentView} />;
  return { ...stage, ...renderAt(`/s/default/agents/alice${query}`, page) };
}

function travelTo(at: number): void {
  usePage.setState(({ live }) => ({ playhead: { world: { ...live, at }, speed: 0 } }));
}

describe("the head of the page", () => {
  test("says who it is, and whom it waits for as a link", () => {
    const began = { taskId: "t", stepId: "t.1", toAgent: "bob", mailId: "m", depth: 1, deadlineAt: 9e9 };
    show("", {}, [note("switch.began", { agentId: "alice", ...began })]);
    expect(screen.getByRole("heading", { level: 1 }).textContent).toBe("Alice");
    const why = screen.getByRole("list", { name: "Reasons" });
    expect(within(why).getByRole("link", { name: "Bob" }).getAttribute("href")).toBe("/s/default/agents/bob");
  });

  test("an agent that is not there is told as such", () => {
    setStage(BEGUN);
    renderAt("/s/default/agents/carol", <Route path="/s/default/agents/:agentId" component={AgentView} />);
    expect(screen.getByText("There is no agent 'carol' here.")).toBeTruthy();
  });

  test("a task is sent and then shown", async () => {
    const user = userEvent.setup();
    const { calls, history } = show("", {
      "async.sendTask": () => aTask("new", { state: "queued" }),
      "task.get": () => aTask("new", { state: "queued" }),
    });
    await user.click(screen.getByRole("button", { name: "Send a task" }));
    await user.type(screen.getByLabelText("What it is to do"), "Count these.");
    await user.click(screen.getByRole("button", { name: "Send" }));
    expect(calls.find(({ method }) => method === "async.sendTask")?.params).toMatchObject({
      agentId: "alice",
      prompt: "Count these.",
      priority: "normal",
    });
    expect(history?.at(-1)).toBe("/s/default/agents/alice?task=new");
  });

  test("chat leads to the room of the two", async () => {
    const user = userEvent.setup();
    const room = { roomId: "r1", title: "", kind: "direct" as const, members: ["alice"], hopLimit: 0 };
    const opened = () => {
      usePage.setState(({ live }) => ({ live: reduce(live, [note("room.created", room)]) }));
      return room as never;
    };
    const { history } = show("", { "room.openChat": opened });
    await user.click(screen.getByRole("button", { name: "Chat" }));
    expect(history?.at(-1)).toBe("/s/default/chats/r1");
  });
});

test("what is written for one agent is not sent to the next that is shown", async () => {
  show("");
  await userEvent.click(screen.getByRole("button", { name: "Send a task" }));
  await userEvent.type(screen.getByLabelText("What it is to do"), "Count these.");
  settle(() => window.history.pushState(null, "", "/s/default/agents/bob"));
  expect(screen.getByRole("heading", { level: 1 }).textContent).toBe("Bob");
  expect(screen.queryByLabelText("What it is to do")).toBeNull();
});

describe("tasks", () => {
  const failed = aTask("t", {
    state: "failed",
    prompt: "Count the words.",
    cause: "task:root",
    parentId: "root",
    error: { code: "model_error", message: "The model did not answer." },
  });

  test("an opened one shows its prompt, why it failed, its tree and a way to retry", async () => {
    const user = userEvent.setup();
    const { calls } = show("?task=t", {
      "task.list": () => ({ tasks: [failed] }),
      "task.tree": () => ({ tasks: [aTask("root", { agentId: "bob", prompt: "All of it." }), failed] }),
      "task.retry": () => failed,
    });
    expect(await screen.findByText("The model did not answer.")).toBeTruthy();
    const parent = await screen.findByRole("link", { name: "All of it." });
    expect(parent.getAttribute("href")).toBe("/s/default/agents/bob?task=root");
    await user.click(screen.getByRole("button", { name: "Retry" }));
    expect(calls.at(-1)).toMatchObject({ method: "task.retry", params: { taskId: "t" } });
  });

  test("a running one is cancelled after a question, with its tree if that is wanted", async () => {
    const user = userEvent.setup();
    const running = aTask("t", { state: "running" });
    const { calls } = show("?task=t", {
      "task.list": () => ({ tasks: [running] }),
      "task.tree": () => ({ tasks: [running, aTask("below", { parentId: "t", state: "queued" })] }),
      "task.cancelTree": () => ({ tasks: [] }),
    });
    await user.click(await screen.findByRole("button", { name: "Cancel the whole tree" }));
    expect(screen.getByRole("dialog").textContent).toMatch(/2 now/);
    expect(calls.some(({ method }) => method === "task.cancelTree")).toBe(false);
    await user.click(screen.getByRole("button", { name: "Cancel the tree" }));
    expect(calls.some(({ method }) => method === "task.cancelTree")).toBe(true);
  });

  test("its steps show what was asked for, what came back, and that strangers may have written it", async () => {
    const call = { callId: "c", name: "read_page", arguments: '{"url":"http://x"}' };
    const run = { sandbox: "bubblewrap", limit: "", wallSeconds: 2, cpuSeconds: 1, memoryBytes: 2048 };
    const result = { content: "<b>hello</b>", isError: false, mails: [], mailsSent: 0, notRun: false, untrusted: true };
    const asked = aStep({ answer: { ...must(aStep().answer), reasoning: "Hm.", toolCalls: [call] } });
    show("?task=t", {
      "task.list": () => ({ tasks: [aTask("t")] }),
      "task.steps": () => ({
        steps: [asked, aStep({ number: 2, kind: "tool", answer: null, call, result: { ...result, run } })],
      }),
    });
    const steps = await screen.findByRole("list", { name: "Steps" });
    const [model, tool] = within(steps).getAllByRole("listitem") as [HTMLElement, HTMLElement];
    expect(model.textContent).toMatch(/scripted.*asks for read_page/s);
    expect(within(model).queryByText("Hm.")).toBeNull();
    expect(tool.textContent).toMatch(/bubblewrap: 2 s, 1 s of processor, 2 KiB/);
    expect(tool.textContent).toContain('"url": "http://x"');
    expect(tool.textContent).toContain("<b>hello</b>");
    expect(within(tool).getByText("untrusted")).toBeTruthy();
  });

  test("one with a schema shows its value and what was objected to an answer before", async () => {
    const outputSchema = { type: "object", required: ["city"] };
    const origin = { ...must(anOrigin()), outputSchema };
    const result = { analysis: "", commentary: "", final: '{"city":"Rome"}', output: { city: "Rome" } };
    show("?task=t", {
      "task.list": () => ({ tasks: [aTask("t", { state: "completed", origin, result })] }),
      "task.steps": () => ({
        steps: [aStep({ answer: { ...must(aStep().answer), text: "Rome", objection: "There is no JSON." } })],
      }),
    });
    expect(await screen.findByText(/"city": "Rome"/)).toBeTruthy();
    expect(screen.getByText("Schema")).toBeTruthy();
    expect(await screen.findByText("There is no JSON.")).toBeTruthy();
  });

  test("what is being written appears as it comes", async () => {
    show("?task=t", { "task.list": () => ({ tasks: [aTask("t", { state: "running" })] }) });
    await screen.findByRole("list", { name: "Steps" });
    const stream = { ...NOTHING_WRITTEN, agentId: "alice", taskId: "t", stepId: "t.1", attempt: 1 };
    settle(() => usePage.setState({ streams: new Map([["t", { ...stream, final: "Half a" }]]) }));
    expect((await screen.findByRole("region", { name: "Being written" })).textContent).toMatch(/Half a/);
  });

  test("are asked for again soon after one has ended", async () => {
    let count = 0;
    show("", { "task.list": () => ({ tasks: [aTask("t", { prompt: `Asked ${++count}` })] }) });
    await screen.findByText("Asked 1");
    const result = { analysis: "", commentary: "", final: "" };
    tell([note("async.task.completed", { agentId: "alice", taskId: "t", result })]);
    expect(await screen.findByText("Asked 2")).toBeTruthy();
  });

  test("one that the list does not have is asked for by its id", async () => {
    show("?task=old", { "task.get": () => aTask("old", { prompt: "Long ago" }) });
    expect((await screen.findAllByText("Long ago")).length).toBeGreaterThan(0);
  });

  test("in the past only what was there is shown, and nothing can be done", async () => {
    show("?task=t", {
      "task.list": () => ({ tasks: [{ ...failed, finishedAt: 500 }, aTask("later", { createdAt: 900 })] }),
    });
    settle(() => travelTo(100));
    const items = await screen.findAllByRole("button", { expanded: true });
    expect(items.map((item) => item.textContent)).toEqual([expect.stringContaining("running")]);
    expect(screen.queryByText("Do something")).toBeNull();
    expect(screen.getByRole("button", { name: "Cancel" })).toHaveProperty("disabled", true);
    expect(screen.getByRole("button", { name: "Send a task" })).toHaveProperty("disabled", true);
  });
});

describe("the other tabs", () => {
  test("the memory shows its files, and the text of the one that is opened", async () => {
    const user = userEvent.setup();
    const { calls } = show("?tab=memory", {
      "memory.list": () => ({
        files: [
          { path: "MEMORY.md", size: 9, changedAt: 5 },
          { path: "people/ann.md", size: 14, changedAt: 6 },
        ],
      }),
      "memory.read": () => ({ path: "people/ann.md", size: 99, changedAt: 6, text: "Ann likes tea.", isCut: true }),
    });
    expect((await screen.findByText("MEMORY.md")).parentElement?.textContent).toContain("told at each task");
    await user.click(screen.getByRole("button", { name: /ann/ }));
    expect(await screen.findByText("Ann likes tea.")).toBeTruthy();
    expect(screen.getByText(/this is its beginning/)).toBeTruthy();
    expect(calls.at(-1)).toMatchObject({ method: "memory.read", params: { agentId: "alice", path: "people/ann.md" } });
  });

  test("a memory is looked at again when a tool of the agent has ended", async () => {
    let count = 0;
    show("?tab=memory", { "memory.list": () => ({ files: [{ path: `file ${++count}`, size: 1, changedAt: 1 }] }) });
    await screen.findByText("file 1");
    tell([
      note("step.finished", {
        agentId: "alice",
        taskId: "t",
        stepId: "t.2",
        kind: "tool",
        state: "done",
        tool: "memory",
      } as never),
    ]);
    expect(await screen.findByText("file 2")).toBeTruthy();
  });

  test("a thread shows what the model was told and what it said", async () => {
    show("?tab=threads&thread=talk", {
      "task.threads": () => ({ threads: [{ threadId: "talk", tasks: 1, firstAt: 1, lastAt: 2 }] }),
      "task.list": () => ({ tasks: [aTask("t", { threadId: "talk" }), aTask("x", { prompt: "Another thread" })] }),
      "task.steps": () => ({ steps: [aStep({ answer: { ...must(aStep().answer), text: "It is done." } })] }),
    });
    expect(await screen.findByText("It is done.")).toBeTruthy();
    expect(screen.getByText("Do something")).toBeTruthy();
    expect(screen.queryByText("Another thread")).toBeNull();
  });

  test("a mail leads to the task that handled it; sent ones are in the other box", async () => {
    const user = userEvent.setup();
    show("?tab=mail&mail=m", {
      "mail.list": () => ({ mails: [aMail("m", { taskId: "t" })] }),
      "mail.listSent": () => ({ mails: [aMail("n", { sender: "alice", recipient: "bob", subject: "Answer" })] }),
    });
    const task = await screen.findByRole("link", { name: "t" });
    expect(task.getAttribute("href")).toBe("/s/default/agents/alice?task=t");
    await user.selectOptions(screen.getByLabelText("Mails"), "sent");
    expect((await screen.findByText(/Answer/)).textContent).toBe("to bob: Answer");
  });

  test("usage stands against limits", async () => {
    const limit = { name: "max_context_bytes", value: 2048, used: 512, source: "agent", reached: 2 } as const;
    show("?tab=usage", {
      "agent.get": () => ({ status: { usage: { ...NOTHING_USED, modelCalls: 7 }, tasks: 3 } }) as never,
      "limits.get": () => ({ scope: "agent", agentId: "alice", limits: [limit] }),
    });
    const row = (await screen.findByText("max context bytes")).closest("tr");
    expect(row?.textContent).toBe("max context bytes 512 B2 KiBagent2 times");
    expect(screen.getByText("7")).toBeTruthy();
  });

  test("a schedule is deleted only after a question", async () => {
    const user = userEvent.setup();
    const schedule = { scheduleId: "s", agentId: "alice", cron: "0 9 * * *", intervalSeconds: null, zone: "UTC" };
    const { calls } = show("?tab=schedules", { "schedule.delete": () => ({}) as never }, [
      note("schedule.created", { ...schedule, prompt: "Look", event: null, data: null, missed: "once", nextAt: 9e9 }),
    ]);
    await user.click(screen.getByRole("button", { name: "Delete" }));
    expect(calls.some(({ method }) => method === "schedule.delete")).toBe(false);
    await user.click(within(screen.getByRole("dialog")).getByRole("button", { name: "Delete" }));
    expect(calls.at(-1)).toMatchObject({ method: "schedule.delete", params: { scheduleId: "s" } });
  });

  test("the log goes on where it ended when something happens to the agent", async () => {
    const entry = (seq: number) => ({ seq, time: "2026-01-01T00:00:00.000Z", level: "info", event: `event ${seq}` });
    const { calls } = show("?tab=log", {
      "log.read": ({ after }) =>
        after === undefined ? { entries: [entry(1)], next: 70 } : { entries: [entry(2)], next: 90 },
    });
    await screen.findByText("1 entry");
    tell([note("agent.paused", { agentId: "alice", reason: "" })]);
    expect(await screen.findByText("2 entries")).toBeTruthy();
    expect(calls.at(-1)?.params).toMatchObject({ agentId: "alice", after: 70 });
  });

  test.each([
    ["inherit", "scripted:demo (the server's)"],
    ["openai:gpt-5", "openai:gpt-5"],
    [["openai-chat:a", "inherit"], "openai-chat:aif it cannot answer: scripted:demo (the server's)"],
  ])("of the model %s the definition tells %s", async (model, told) => {
    show("?tab=definition", {
      "agent.get": () =>
        ({ agentId: "alice", definition: { model }, ownTools: [], createdAt: 1, startedAt: null }) as never,
    });
    usePage.setState({ server: { model: "scripted:demo" } as ServerInfo });
    expect((await screen.findByText("Model")).nextElementSibling?.textContent).toBe(told);
  });

  test("the definition shows what the agent may touch", async () => {
    const definition = {
      prompt: "You count.",
      folders: { data: "read" },
      network: ["example.org"],
      tools: ["read_file"],
    };
    show("?tab=definition", {
      "agent.get": () =>
        ({ agentId: "alice", definition, ownTools: ["count"], createdAt: 1, startedAt: null }) as never,
    });
    for (const text of ["You count.", "data: read", "example.org", "read_file", "count"])
      expect(await screen.findByText(text)).toBeTruthy();
  });
});

function must<Value>(value: Value | null): Value {
  if (value === null) throw new Error("It is not there.");
  return value;
}
