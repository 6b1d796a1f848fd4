import { expect, test } from "vitest";
import { describeInBrowser, setStage, testThatAllWentWell } from "./stage";

describeInBrowser("steering", () => {
  const stage = setStage();
  const dialog = () => stage().page.getByRole("dialog");
  const button = (name: string) => stage().page.getByRole("button", { name });
  const badge = (place: string) =>
    stage().page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: place }).locator(".nav-badge");

  /** What the model said in the end. */
  async function resultOf(taskId: string): Promise<string> {
    const { result } = await stage().call<{ result: { final: string } }>("task.wait", { taskId });
    return result.final;
  }

  async function give(agentId: string, prompt: string): Promise<string> {
    const { taskId } = await stage().call<{ taskId: string }>("async.sendTask", { agentId, prompt });
    return taskId;
  }

  test("a tool call that needs a person waits on the page, and runs when it is approved", async () => {
    const writer = { name: "Writer", tools: ["write_file"], approve: ["write_file"] };
    await stage().call("async.createAgent", { agentId: "writer", config: writer });
    const taskId = await give("writer", "write it down");
    await badge("Approvals").getByText("1").waitFor();
    await stage().choose("Approvals");
    const card = stage().page.getByRole("article", { name: "write_file of writer" });
    await card.getByText("Low tide at six").first().waitFor();
    await card.getByRole("button", { name: "Approve" }).click();
    await card.getByText("approved").waitFor();
    await stage().page.mouse.move(0, 0); // it stays while somebody looks
    await card.waitFor({ state: "detached" });
    await stage().page.getByRole("region", { name: "Decided" }).locator('[data-look="good"]').waitFor();
    expect(await resultOf(taskId)).toContain("tide.txt");
    await badge("Approvals").waitFor({ state: "detached" });
  });

  test("a call that is refused is not run, and its agent is told the reason", async () => {
    const taskId = await give("writer", "write it down");
    const card = stage().page.getByRole("article", { name: "write_file of writer" });
    await card.focus();
    await stage().page.keyboard.press("r");
    await stage().page.keyboard.type("the tide is late");
    await card.getByRole("button", { name: "Refuse" }).click();
    await card.getByText("refused").waitFor();
    await stage().page.mouse.move(0, 0);
    await card.waitFor({ state: "detached" });
    expect(await resultOf(taskId)).toContain("it was not run. They say: the tide is late");
    await stage().page.getByRole("region", { name: "Decided" }).getByText("the tide is late").waitFor();
  });

  test("a schedule is made, paused, resumed and deleted", async () => {
    const { page } = stage();
    await stage().cast("alice");
    await stage().choose("Schedules");
    await button("New schedule").click();
    await dialog().getByRole("combobox", { name: "Agent", exact: true }).fill("alice");
    await dialog().getByRole("textbox", { name: "Prompt" }).fill("Look at the sea");
    await dialog().getByRole("combobox", { name: /^When/ }).selectOption({ label: "every so many minutes" });
    await dialog().getByRole("textbox", { name: "Minutes" }).fill("90");
    await dialog().getByRole("button", { name: "Create" }).click();
    const row = page.getByRole("row").filter({ hasText: "Look at the sea" });
    await row.waitFor();
    expect(await row.textContent()).not.toContain("not planned");
    await row.getByRole("button", { name: "Pause" }).click();
    await row.getByText("not planned").waitFor();
    await row.getByRole("button", { name: "Resume" }).click();
    await row.getByText("not planned").waitFor({ state: "detached" });
    await row.getByRole("button", { name: "Delete" }).click();
    await dialog().getByRole("button", { name: "Delete" }).click();
    await row.waitFor({ state: "detached" });
  });

  test("a lock is taken by a person; who waits for it gets it when it is broken", async () => {
    const { page } = stage();
    await stage().choose("Locks");
    await button("Take a lock").click();
    await dialog().getByLabel("Name").fill("quay");
    await dialog().getByRole("button", { name: "Take it" }).click();
    const lock = page.getByRole("article").filter({ hasText: "quay" });
    await lock.getByText("held by").waitFor();
    const taskId = await give("alice", "Moor until quay");
    await lock.getByRole("list", { name: "Who waits for quay" }).getByText("alice", { exact: false }).waitFor();
    await lock.getByRole("button", { name: "Break" }).click();
    await dialog().getByRole("button", { name: "Break" }).click();
    await page.getByText("No lock is held.").waitFor();
    expect(await resultOf(taskId)).toBe("I have seen quay.");
  });

  test("a task that failed for good is a dead letter, and is taken up again", async () => {
    const { page } = stage();
    await give("alice", "go wrong");
    await badge("Dead letters").getByText("1").waitFor();
    await stage().choose("Dead letters");
    const letter = page.getByRole("article", { name: "go wrong" });
    await letter.getByText("refused").first().waitFor();
    const before = await stage().call<{ lastSeq: number }>("events.list", { limit: 1 });
    await letter.getByRole("button", { name: "Retry" }).click();
    await page.getByText("One task was taken up again.").waitFor();
    await badge("Dead letters").getByText("1").waitFor(); // the rules let it fail again
    const after = await stage().call<{ lastSeq: number }>("events.list", { limit: 1 });
    expect(after.lastSeq).toBeGreaterThan(before.lastSeq);
  });

  test("a limit is changed, and holds", async () => {
    const { page } = stage();
    await page.goto(`${stage().address("limits")}?agent=alice`);
    const row = page
      .getByRole("row")
      .filter({ hasText: /^Steps/ })
      .first();
    await row.getByRole("button", { name: /^Change/ }).click();
    await dialog().getByRole("textbox").fill("7");
    await dialog().getByRole("button", { name: "Change" }).click();
    await row.getByText("7", { exact: true }).waitFor();
    const { limits } = await stage().call<{ limits: { name: string; value: number }[] }>("limits.get", {
      agentId: "alice",
    });
    expect(limits.find(({ name }) => name === "max_steps_per_task")?.value).toBe(7);
  });

  testThatAllWentWell(stage);
});
