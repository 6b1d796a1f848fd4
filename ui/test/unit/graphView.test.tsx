import { act, cleanup, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { reduce } from "../../src/projection/reduce";
import { tell, usePage } from "../../src/state/page";
import GraphView from "../../src/views/graph/GraphView";
import { useLights } from "../../src/views/graph/lights";
import { note, renderAt, setStage } from "./stage";

const mail = (sender: string, recipient: string) =>
  note("mail.sent", {
    mailId: `${sender} to ${recipient}`,
    threadId: "t",
    sender,
    sequence: 1,
    recipient,
    subject: "Hello",
    priority: "normal",
    replyTo: null,
  });
const created = (agentId: string) => note("agent.created", { agentId, name: agentId, description: "" });

beforeEach(() => {
  vi.stubGlobal("matchMedia", () => ({ matches: true, addEventListener: () => {}, removeEventListener: () => {} }));
  localStorage.clear();
});

afterEach(cleanup);

test("without agents it says what would be drawn", () => {
  setStage([]);
  renderAt("/s/default/graph", <GraphView />);
  expect(screen.getByText("No agents yet")).toBeTruthy();
  expect(screen.getByRole("button", { name: "Create the first agent" })).toBeTruthy();
});

test("the table tells each link, and choosing one shows its mails", async () => {
  setStage([created("ann"), created("bob"), mail("ann", "bob")], {
    "mail.list": ({ owner }) => ({
      mails:
        owner === "bob"
          ? [
              {
                sender: "ann",
                subject: "Hello",
                body: "<b>How are you?</b>",
                createdAt: 1,
                mailId: "m",
                state: "read",
              } as never,
            ]
          : [],
    }),
  });
  const { history } = renderAt("/s/default/graph?as=table", <GraphView />);
  const row = screen.getByRole("row", { name: /ann bob 1 mail/ });
  await userEvent.click(within(row).getByRole("button", { name: "1 mail" }));
  expect(history?.at(-1)).toContain("edge=ann%7Ebob");
  expect(await screen.findByText("<b>How are you?</b>")).toBeTruthy();
});

test("an agent from the address is shown with what it has to do with others", () => {
  setStage([created("ann"), created("bob"), mail("ann", "bob")]);
  renderAt("/s/default/graph?as=table&node=bob", <GraphView />);
  const details = screen.getByRole("complementary", { name: "Details" });
  expect(within(details).getByRole("heading", { name: "bob" })).toBeTruthy();
  expect(within(details).getByRole("link", { name: "Its page" }).getAttribute("href")).toBe("/s/default/agents/bob");
  expect(within(details).getByText("1 mail")).toBeTruthy();
});

test("waits that follow each other are told as a chain", () => {
  const began = (agentId: string, toAgent: string) =>
    note("switch.began", { agentId, toAgent, taskId: "t", stepId: agentId, mailId: "m", depth: 1, deadlineAt: 9e9 });
  setStage([created("ann"), created("bob"), created("cid"), began("ann", "bob"), began("bob", "cid")]);
  renderAt("/s/default/graph?as=table", <GraphView />);
  const chain = screen.getByText("Waits for each other:").parentElement as HTMLElement;
  expect(
    within(chain)
      .getAllByRole("button")
      .map((button) => button.textContent),
  ).toEqual(["ann", "bob", "cid"]);
});

test("a line tells for how long one has waited for the other", () => {
  const deadlineAt = 9e9;
  const began = { agentId: "ann", toAgent: "bob", taskId: "t", stepId: "s", mailId: "m", depth: 1, deadlineAt };
  setStage([created("ann"), created("bob"), note("switch.began", began)]);
  renderAt("/s/default/graph?as=table&edge=ann~bob", <GraphView />);
  const told = within(screen.getByRole("complementary", { name: "Details" })).getByText(/has waited for/);
  expect(told.textContent).toMatch(/ for [\d,]+ (s|min|h|d)\b/);
});

test("what happens lights up, but not while the past is shown", () => {
  setStage([created("ann"), created("bob")]);
  renderAt("/s/default/graph?as=table", <GraphView />);
  const happens = (name: string) =>
    act(() => {
      const notes = [mail("ann", name)];
      usePage.setState(({ live }) => ({ live: reduce(live, notes) }));
      tell(notes);
    });
  usePage.setState(({ live }) => ({ playhead: { world: live, speed: 0 } }));
  happens("bob");
  expect(useLights.getState().lit.size).toBe(0);
  usePage.setState({ playhead: null });
  happens("bob");
  expect([...useLights.getState().lit.keys()]).toEqual(["mail\nann\nbob"]);
});

test("the agents are drawn, and one can be opened with the keyboard", async () => {
  vi.spyOn(HTMLElement.prototype, "offsetWidth", "get").mockReturnValue(800);
  vi.spyOn(HTMLElement.prototype, "offsetHeight", "get").mockReturnValue(600);
  setStage([created("ann"), created("bob"), mail("ann", "bob")]);
  const { history } = renderAt("/s/default/graph", <GraphView />);
  const node = await screen.findByRole("button", { name: /^ann not started/ });
  act(() => node.focus());
  await userEvent.keyboard("{Enter}");
  expect(history?.at(-1)).toContain("node=ann");
});

test("of many agents all are seen at once, with their lines as one drawing until one of them is picked", async () => {
  vi.spyOn(HTMLElement.prototype, "offsetWidth", "get").mockReturnValue(800);
  vi.spyOn(HTMLElement.prototype, "offsetHeight", "get").mockReturnValue(600);
  vi.stubGlobal("matchMedia", () => ({ matches: false, addEventListener: () => {}, removeEventListener: () => {} }));
  const ids = Array.from({ length: 202 }, (_, number) => `agent${number}`);
  const agents = ids.map(created);
  const toParents = ids.slice(1).map((id, index) => mail(id, `agent${Math.floor(index / 3)}`));
  setStage([...agents, ...toParents]); // a tree: nobody is in the upper left corner
  const { container } = renderAt("/s/default/graph", <GraphView />);
  await waitFor(() => expect(container.querySelectorAll(".react-flow__node")).toHaveLength(203));
  expect(container.querySelectorAll(".react-flow__edge")).toHaveLength(0);
  const drawn = () => container.querySelector(".graph-many .graph-line")?.getAttribute("d")?.match(/M/g)?.length;
  expect(drawn()).toBe(201);
  act(() => container.querySelector<HTMLElement>('[data-id="agent1"]')?.focus());
  await userEvent.keyboard("{Enter}");
  await waitFor(() => expect(container.querySelectorAll(".react-flow__edge")).toHaveLength(4));
  expect(drawn()).toBe(197);
});

test("a graph in which nothing was found at first shows what is found then", async () => {
  vi.spyOn(HTMLElement.prototype, "offsetWidth", "get").mockReturnValue(800);
  vi.spyOn(HTMLElement.prototype, "offsetHeight", "get").mockReturnValue(600);
  setStage([created("ann"), created("bob")]);
  const { container } = renderAt("/s/default/graph?q=nobody", <GraphView />);
  expect(screen.getByText("0 shown")).toBeTruthy();
  await userEvent.clear(screen.getByRole("searchbox"));
  await waitFor(() => expect(container.querySelectorAll(".react-flow__node")).toHaveLength(3));
  expect(container.querySelector<HTMLElement>(".react-flow__viewport")?.style.transform).toMatch(/scale\([\d.]+\)/);
});
