import { cleanup, screen, act as settled, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { MailRecord, TaskRecord } from "../../src/client/client";
import { usePage, whyNotLive } from "../../src/state/page";
import DeadLettersView from "../../src/views/dead/DeadLettersView";
import { canSettle, lettersOf, matching } from "../../src/views/dead/letters";
import { note, renderAt, setStage } from "./stage";

beforeEach(() => {
  HTMLDialogElement.prototype.showModal = function showModal() {
    this.open = true;
  };
});
afterEach(cleanup);

const task = (taskId: string, finishedAt: number, more: Partial<TaskRecord> = {}): TaskRecord =>
  ({
    sessionId: "default",
    taskId,
    agentId: "ann",
    threadId: taskId,
    kind: "user_prompt",
    prompt: `Do ${taskId}\nnow`,
    state: "failed",
    mailId: null,
    attempts: 2,
    restarts: 0,
    error: { code: "model_refused", message: `${taskId} was refused by the model.` },
    createdAt: 1,
    finishedAt,
    ...more,
  }) as TaskRecord;
const mail = (mailId: string, taskId: string | null): MailRecord =>
  ({ mailId, taskId, sender: "bob", recipient: "ann", subject: "Please", body: "Do it.", createdAt: 1 }) as MailRecord;

function stage(tasks: TaskRecord[], mails: MailRecord[] = []) {
  return setStage([note("agent.created", { agentId: "ann", name: "Ann", description: "" })], {
    "task.deadLetters": () => ({ tasks, mails }),
    "task.dismiss": ({ taskId }) => task(taskId, 0),
    "task.retry": ({ taskId }) => task(taskId, 0),
    "task.tree": () => ({ tasks: [tasks[0] as TaskRecord, task("child", 0, { parentId: "one", state: "running" })] }),
    "task.cancelTree": () => ({ tasks: [task("child", 0)] }),
  });
}
const done = (calls: { method: string; params: object }[], method: string) =>
  calls.filter((call) => call.method === method).map(({ params }) => params);

test("without dead letters it says how they come about", async () => {
  stage([]);
  renderAt("/s/default/dead", <DeadLettersView />);
  expect(await screen.findByText("No dead letters.")).toBeTruthy();
});

test("why it failed is a sentence, and it can be taken up again", async () => {
  const { calls } = stage([task("one", 10)]);
  renderAt("/s/default/dead", <DeadLettersView />);
  expect(await screen.findByText("one was refused by the model.")).toBeTruthy();
  expect(screen.getByText("user prompt, begun 2 times")).toBeTruthy();
  await userEvent.click(screen.getByRole("button", { name: "Retry" }));
  expect(done(calls, "task.retry")).toEqual([{ sessionId: "default", taskId: "one" }]);
});

test("several are taken up again after they were chosen, all after a question", async () => {
  const { calls } = stage([task("one", 10), task("two", 20), task("three, 100%", 30)]);
  renderAt("/s/default/dead", <DeadLettersView />);
  await userEvent.click(await screen.findByLabelText("Choose Do one"));
  await userEvent.click(screen.getByLabelText("Choose Do three, 100%"));
  await userEvent.click(screen.getByRole("button", { name: "Retry chosen (2)" }));
  await waitFor(() => expect(done(calls, "task.retry")).toMatchObject([{ taskId: "three, 100%" }, { taskId: "one" }]));
  await userEvent.click(await screen.findByRole("button", { name: "Retry all (3)" }));
  expect(done(calls, "task.retry")).toHaveLength(2);
  await userEvent.click(within(screen.getByRole("dialog")).getByRole("button", { name: "Retry all" }));
  await waitFor(() => expect(done(calls, "task.retry")).toHaveLength(5));
});

test("what need not be done any more is dismissed after a question, one or those that were chosen", async () => {
  const { calls } = stage([task("one", 10), task("two", 20), task("three, 100%", 30)]);
  renderAt("/s/default/dead", <DeadLettersView />);
  const card = within(await screen.findByRole("article", { name: "Do two" }));
  await userEvent.click(card.getByRole("button", { name: "Dismiss" }));
  expect(done(calls, "task.dismiss")).toEqual([]);
  await userEvent.click(within(screen.getByRole("dialog")).getByRole("button", { name: "Dismiss" }));
  await waitFor(() => expect(done(calls, "task.dismiss")).toEqual([{ sessionId: "default", taskId: "two" }]));
  await userEvent.click(await screen.findByLabelText("Choose Do one"));
  await userEvent.click(screen.getByLabelText("Choose Do three, 100%"));
  await userEvent.click(screen.getByRole("button", { name: "Dismiss chosen (2)" }));
  await userEvent.click(within(screen.getByRole("dialog")).getByRole("button", { name: "Dismiss" }));
  await waitFor(() => expect(done(calls, "task.dismiss")).toHaveLength(3));
});

test("what a task caused and still runs is cancelled after a question", async () => {
  const { calls } = stage([task("one", 10)]);
  renderAt("/s/default/dead?open=one", <DeadLettersView />);
  await userEvent.click(await screen.findByRole("button", { name: "Cancel them" }));
  expect(done(calls, "task.cancelTree")).toEqual([]);
  await userEvent.click(screen.getByRole("button", { name: "Cancel the tasks" }));
  expect(done(calls, "task.cancelTree")).toEqual([{ sessionId: "default", taskId: "one" }]);
});

test("what a task caused stays in sight while the connection is away", async () => {
  stage([task("one", 10)]);
  renderAt("/s/default/dead?open=one", <DeadLettersView />);
  const cancel = (await screen.findByRole("button", { name: "Cancel them" })) as HTMLButtonElement;
  settled(() => usePage.setState({ connection: "lost" }));
  expect(document.body.contains(cancel)).toBe(true);
  expect([cancel.disabled, cancel.title]).toEqual([true, "There is no connection to the server."]);
});

test("in the past nothing can be taken up, and what failed later is not there", async () => {
  stage([task("early", 10), task("late", 5_000_000_000)]);
  usePage.setState(({ live }) => ({ playhead: { world: live, speed: 0 } }));
  renderAt("/s/default/dead", <DeadLettersView />);
  expect(((await screen.findByRole("button", { name: "Retry" })) as HTMLButtonElement).disabled).toBe(true);
  expect((screen.getByRole("button", { name: "Dismiss" }) as HTMLButtonElement).disabled).toBe(true);
  for (const name of ["Retry", "Dismiss", "Retry chosen (0)", "Dismiss chosen (0)", "Retry all (1)"]) {
    expect([name, screen.getByRole("button", { name }).title]).toEqual([name, whyNotLive()]);
  }
  expect(screen.queryByText("late was refused by the model.")).toBeNull();
});

test("a task and the mail that it was for are one letter, the newest first", () => {
  const dead = {
    tasks: [task("one", 10, { mailId: "m1" }), task("two", 20)],
    mails: [mail("m1", "one"), mail("m2", null)],
  };
  const letters = lettersOf(dead, Number.POSITIVE_INFINITY);
  expect(letters.map(({ id, title }) => [id, title])).toEqual([
    ["two", "Do two"],
    ["one", "Please"],
    ["m2", "Please"],
  ]);
  expect(letters.map(canSettle)).toEqual([true, true, false]);
  expect(matching(letters, "", "DO IT").map(({ id }) => id)).toEqual(["one", "m2"]);
  expect(matching(letters, "bob", "")).toEqual([]);
});
