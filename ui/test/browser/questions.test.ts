import { expect, test } from "vitest";
import { describeInBrowser, setStage, testThatAllWentWell } from "./stage";

describeInBrowser("questions", () => {
  const stage = setStage();

  async function states(): Promise<Record<string, string>> {
    type Listed = { questions: { agentId: string; state: string }[] };
    const { questions } = await stage().call<Listed>("question.list", { questionState: null });
    return Object.fromEntries(questions.map(({ agentId, state }) => [agentId, state]));
  }

  async function create(agentId: string): Promise<void> {
    await stage().call("async.createAgent", { agentId, config: { name: agentId, tools: ["ask_user"] } });
  }

  const field = () => stage().page.getByRole("textbox", { name: "Message" });
  const card = (agentId: string) => stage().page.getByRole("article", { name: `Question of ${agentId}` });

  test("a question is announced, counted and answered in its form", async () => {
    await create("gina");
    await stage().go("");
    const { page } = stage();
    await stage().call("async.sendTask", { agentId: "gina", prompt: "plan my trip", taskId: "trip" });
    await page.getByText("gina asks you: Where do you want to go?").first().waitFor();
    await page.getByRole("link", { name: "Questions 1" }).click();
    await card("gina").getByLabel("city").fill("Rome");
    await card("gina").getByLabel("days").fill("99");
    await card("gina").getByRole("button", { name: "Answer", exact: true }).click();
    await card("gina").getByText("It must be a whole number, at least 1, at most 14, not 99.").waitFor();
    expect(await states()).toEqual({ gina: "pending" });
    await card("gina").getByLabel("days").fill("3");
    await card("gina").getByLabel("dinner").check();
    await card("gina").getByRole("button", { name: "Answer", exact: true }).click();
    await page.getByText("No agent asks you anything.").waitFor();
    await expect.poll(states).toEqual({ gina: "answered" });
    type Task = { result: { final: string } | null };
    await expect
      .poll(async () => (await stage().call<Task>("task.get", { taskId: "trip" })).result?.final)
      .toContain('{"city":"Rome","days":3,"meals":["dinner"]}');
  });

  test("a question in a chat is answered there", async () => {
    await create("hugo");
    const { roomId } = await stage().call<{ roomId: string }>("room.openChat", { agentId: "hugo" });
    await stage().go(`chats/${roomId}`);
    const { page } = stage();
    await field().fill("plan my trip");
    await page.keyboard.press("Enter");
    await card("hugo").getByLabel("city").fill("Oslo");
    await card("hugo").getByLabel("days").fill("2");
    await card("hugo").getByRole("button", { name: "Answer", exact: true }).click();
    await page.getByText("Off we go").waitFor();
    expect((await states()).hugo).toBe("answered");
  });

  test("a message that is sent while an agent works goes into its answer", async () => {
    await stage().call("async.createAgent", { agentId: "ivan", config: { name: "ivan" } });
    const { roomId } = await stage().call<{ roomId: string }>("room.openChat", { agentId: "ivan" });
    await stage().go(`chats/${roomId}`);
    const { page } = stage();
    const letGo = await stage().hold("ebb");
    await field().fill("wait until ebb");
    await page.keyboard.press("Enter");
    await page.getByText("waits for the lock ebb").first().waitFor();
    await field().fill("echo: I have turned round");
    await page.getByRole("button", { name: "Send now" }).click();
    await expect.poll(() => field().inputValue()).toBe("");
    await letGo();
    await page.getByText("heard it and answers it with the one before").waitFor();
    await page.locator(".chat-message:not(.chat-message-user)").getByText("I have turned round").waitFor();
  });

  testThatAllWentWell(stage);
});
