import { expect, test } from "vitest";
import { describeInBrowser, setStage, testThatAllWentWell } from "./stage";

describeInBrowser("the page of an agent", () => {
  const stage = setStage();
  const dialog = () => stage().page.getByRole("dialog");
  const lifecycle = (name: string) =>
    stage().page.getByRole("group", { name: "Lifecycle" }).getByRole("button", { name, exact: true });
  const isNow = (state: string) => stage().page.locator(`.agent-head .state[data-state="${state}"]`).waitFor();
  const why = () => stage().page.getByRole("list", { name: "Reasons" });
  const tab = (name: string) =>
    stage().page.getByRole("navigation", { name: "About this agent" }).getByRole("link", { name }).click();

  async function send(prompt: string) {
    await stage().page.getByRole("button", { name: "Send a task" }).click();
    await dialog().getByLabel("What it is to do").fill(prompt);
    await dialog().getByRole("button", { name: "Send" }).click();
  }

  test("an agent that was not started is started", async () => {
    await stage().call("async.createAgent", { agentId: "alice", config: { name: "Alice" }, autoStart: false });
    await stage().row("alice").getByRole("link", { name: "Alice" }).click();
    await stage().page.waitForURL("**/agents/alice");
    expect(await lifecycle("Pause").isDisabled()).toBe(true);
    await lifecycle("Start").click();
    await expect.poll(() => lifecycle("Pause").isEnabled()).toBe(true);
    expect(await lifecycle("Start").isDisabled()).toBe(true);
  });

  test("it is paused with a reason, and resumed", async () => {
    await lifecycle("Pause").click();
    await dialog()
      .getByLabel(/^(Why|Reason)/)
      .fill("lunch");
    await dialog().getByRole("button", { name: "Pause" }).click();
    await isNow("paused");
    await why().getByText("lunch").waitFor();
    await lifecycle("Resume").click();
    await isNow("idle");
    await why().waitFor({ state: "detached" });
  });

  test("it sleeps for a time, and is woken with a reason", async () => {
    await lifecycle("Sleep").click();
    await dialog().getByLabel("For", { exact: true }).fill("2");
    await dialog().getByLabel("Unit").selectOption("hours");
    await dialog().getByRole("button", { name: "Sleep" }).click();
    await isNow("sleeping");
    await why().getByText("Wakes").waitFor();
    await lifecycle("Wake").click();
    await dialog()
      .getByLabel(/^(Why|Reason)/)
      .fill("the boat is in");
    await dialog().getByRole("button", { name: "Wake" }).click();
    await expect.poll(() => lifecycle("Wake").isDisabled()).toBe(true);
    expect(await stage().page.locator('.agent-head .state[data-state="sleeping"]').count()).toBe(0);
  });

  test("a task that is sent is seen running, with its progress and what it waits for", async () => {
    const letGo = await stage().hold("pages");
    await isNow("idle");
    await send("Read until pages");
    await isNow("active");
    const running = stage().page.getByRole("list", { name: "Running tasks" });
    await running.getByText("40 %").waitFor();
    await running.getByText("acquire_lock").waitFor();
    await why().getByText("Waits for the lock pages").waitFor();
    await letGo();
    await isNow("idle");
    await running.waitFor({ state: "detached" });
  });

  test("an interrupted agent is paused at once, and takes up its task when it is resumed", async () => {
    const letGo = await stage().hold("harbour");
    await send("Look until harbour");
    await isNow("active");
    await stage().page.getByRole("list", { name: "Running tasks" }).getByText("acquire_lock").waitFor();
    await lifecycle("Interrupt").click();
    await dialog().getByRole("button", { name: "Interrupt" }).click();
    await isNow("paused");
    await lifecycle("Resume").click();
    await isNow("active");
    await letGo();
    await isNow("idle");
  });

  test("a task is unfolded into its steps: requests, calls with arguments and results, and its result", async () => {
    const { page } = stage();
    await page.locator(".agent-row", { hasText: "Read until pages" }).click();
    await page.waitForURL("**/agents/alice?task=*");
    const steps = page.getByRole("list", { name: "Steps" }).getByRole("listitem");
    await expect.poll(() => steps.count()).toBe(7);
    expect(await steps.nth(0).textContent()).toContain("Model request · scripted");
    expect(await steps.nth(0).textContent()).toContain("asks for report_progress");
    expect(await steps.nth(1).textContent()).toContain('"percent": 40');
    expect(await steps.nth(3).textContent()).toContain("acquire_lock");
    expect(await steps.nth(3).textContent()).toContain('"name": "pages"');
    expect(await steps.nth(3).textContent()).toMatch(/Result.*lock 'pages'/);
    expect(await steps.nth(6).textContent()).toContain("I have seen pages.");
    await page.reload();
    await expect.poll(() => steps.count()).toBe(7);
  });

  test("what it used is shown against its limits", async () => {
    await tab("Usage");
    const used = stage().page.getByRole("region", { name: "Used" });
    await used.getByText("in 3 tasks").waitFor(); // the third told it why it was woken
    const limit = stage().page.getByRole("row").filter({ hasText: "max queue length" });
    expect(await limit.textContent()).toContain("10K");
    await stage().call("limits.set", { agentId: "alice", limits: { max_tokens_per_agent: 1_000_000 } });
    const tokens = stage().page.getByRole("row").filter({ hasText: "max tokens per agent" });
    await tokens.getByText("1M").waitFor();
    await tokens.getByRole("meter").waitFor();
  });

  test("what it keeps in mind is shown, and shown anew when it has changed it", async () => {
    const { page } = stage();
    await stage().call("async.createAgent", { agentId: "keeper", config: { name: "Keeper", tools: ["memory"] } });
    await page.goto(page.url().replace(/\/agents\/alice.*/, "/agents/keeper?tab=memory"));
    await page.getByText("It keeps nothing in mind.").waitFor();
    await stage().call("async.sendTask", { agentId: "keeper", prompt: "keep in mind: <b>Low</b> tide at six" });
    const files = page.getByRole("list", { name: "Files of its memory" });
    await files.getByRole("button", { name: /MEMORY.md/ }).click();
    await files.getByText("<b>Low</b> tide at six").waitFor();
    await stage().call("async.sendTask", { agentId: "keeper", prompt: "keep in mind: Low tide at seven" });
    await files.getByText("Low tide at seven").waitFor();
  });

  test("a task with a schema shows its value, and what was objected to its first answer", async () => {
    const { page } = stage();
    const outputSchema = { type: "object", properties: { boat: { type: "string" } }, required: ["boat"] };
    const params = { agentId: "alice", prompt: "which boat", taskId: "boat", outputSchema };
    await stage().call("async.sendTask", params);
    await page.goto(page.url().replace(/\/agents\/keeper.*/, "/agents/alice?task=boat"));
    await page.locator(".agent-part", { hasText: "Result" }).getByText('"boat": "Anna"').waitFor();
    const steps = page.getByRole("list", { name: "Steps" }).getByRole("listitem");
    await expect.poll(() => steps.count()).toBe(2);
    expect(await steps.nth(0).textContent()).toContain("There is no JSON in your answer.");
  });

  test("its log goes on as it does, and finds an entry", async () => {
    const { page } = stage();
    await tab("Log");
    const log = page.getByRole("log", { name: "Log of the agent" });
    await log.getByText("async.task.started").first().waitFor();
    await page.getByLabel("Find in the log").fill("lighthouse");
    await page.getByText("No entry matches.").waitFor();
    await stage().call("mail.send", { to: "alice", subject: "From the lighthouse", body: "How are you?" });
    await log.getByText("lighthouse").first().waitFor();
    await log.getByRole("button").first().click();
    await dialog().getByText("From the lighthouse").waitFor();
    await page.keyboard.press("Escape");
    await dialog().waitFor({ state: "detached" });
  });

  test("its threads hold what was said, its mail what it was written", async () => {
    const { page } = stage();
    await tab("Mail");
    await page.locator(".agent-row", { hasText: "From the lighthouse" }).click();
    await page.getByText("How are you?").first().waitFor();
    await tab("Threads");
    await page.locator(".agent-tab .agent-row").first().click();
    await page.locator(".agent-tab").getByText("From the lighthouse").first().waitFor();
    await page.locator(".agent-tab").getByText("Hello, I am **here**.").first().waitFor();
    await tab("Definition");
    await page.locator(".agent-tab").getByText("Alice").first().waitFor();
  });

  test("it is stopped after a question, and started again", async () => {
    await lifecycle("Stop").click();
    await dialog().getByRole("button", { name: "Stop" }).click();
    await isNow("stopped");
    await lifecycle("Start").click();
    await isNow("idle");
  });

  testThatAllWentWell(stage);
});
