import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import type { AxeResults } from "axe-core";
import { beforeAll, expect, test } from "vitest";
import { describeInBrowser, setStage, testThatAllWentWell } from "./stage";

const AXE = readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface Told {
  notifications: { seq: number; name: string; params: { agentId?: string; kind?: string; tool?: string } }[];
}

describeInBrowser("forks of a session", () => {
  const stage = setStage();
  const dialog = () => stage().page.getByRole("dialog");
  const past = () => stage().page.getByRole("region", { name: "Time travel" });
  const timelines = () => stage().page.getByRole("region", { name: "Timelines", exact: true });
  /** The entry after which the first task of alice begins, and one in the middle of a tool call. */
  let queued = 0;
  let inTool = 0;

  beforeAll(async () => {
    await stage().cast("alice", "bob");
    await stage().call("async.createAgent", {
      agentId: "grace",
      config: { name: "Grace", tools: ["write_file"], prompt: "You keep the book." },
    });
    for (const [agentId, prompt] of [
      ["alice", "please ask bob"],
      ["grace", "write it down"],
    ]) {
      const { taskId } = await stage().call<{ taskId: string }>("async.sendTask", { agentId, prompt });
      await stage().call("task.wait", { taskId });
    }
    const { notifications } = await stage().call<Told>("events.list", { limit: 1000 });
    queued = notifications.find(({ name }) => name === "async.task.queued")?.seq ?? 0;
    const tool = notifications.find(({ name, params }) => name === "step.finished" && params.tool === "write_file");
    inTool = (tool?.seq ?? 0) - 1;
    await stage().go(); // so that the page has heard of all of it
  });

  async function wrongs(): Promise<string[]> {
    await stage().page.evaluate(await AXE);
    const found = await stage().page.evaluate(() =>
      (globalThis as unknown as { axe: { run: (o: object) => Promise<AxeResults> } }).axe.run({ preload: false }),
    );
    return found.violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html.slice(0, 160)}`));
  }

  test("in the past a session is forked from there, with an agent that is told otherwise", async () => {
    const { page } = stage();
    await stage().turnTo(`timeline?at=${queued}`);
    await past().getByRole("button", { name: "Fork from here" }).click();
    await expect.poll(() => dialog().getByLabel("After entry").inputValue()).toBe(String(queued));
    await dialog().getByText("Change what agents are").click();
    await dialog().getByRole("checkbox", { name: /Grace/ }).check();
    const grace = dialog().getByRole("group", { name: "Grace" });
    await expect.poll(() => grace.getByLabel("Prompt").inputValue()).toBe("You keep the book.");
    await grace.getByLabel("Prompt").press("Control+End");
    await page.keyboard.press("Backspace");
    await page.keyboard.type(" of the harbour.");
    await dialog().getByLabel("Id of the new session").fill("default");
    await stage().shot("fork-dialog");
    expect(await wrongs()).toEqual([]);
    await dialog().getByRole("button", { name: "Fork", exact: true }).click();
    await dialog().getByText("There is a session 'default' already.").waitFor();
    expect(await grace.getByLabel("Prompt").inputValue()).toBe("You keep the book of the harbour.");
    await dialog().getByLabel("Id of the new session").fill("told-otherwise");
    await dialog().getByRole("button", { name: "Fork", exact: true }).click();
    await dialog().getByRole("link", { name: "Compare" }).waitFor();
    await stage().shot("forked");
    const { definition } = await stage().call<{ definition: { prompt: string } }>("agent.get", {
      sessionId: "told-otherwise",
      agentId: "grace",
    });
    expect(definition.prompt).toBe("You keep the book of the harbour.");
    await page.keyboard.press("Escape");
    await page.setViewportSize({ width: 390, height: 844 });
    await stage().shot("past-phone");
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.getByLabel("Session", { exact: true }).selectOption("told-otherwise");
    await page.waitForURL("**/s/told-otherwise");
    await stage().isLive();
    await stage().row("grace").waitFor();
  });

  test("where a tool was at work it cannot be forked, and the nearest entries are offered", async () => {
    const { page } = stage();
    await stage().turnTo(`log?entry=${inTool}`);
    await page
      .getByRole("complementary", { name: `Entry ${inTool}` })
      .getByRole("button", { name: "Fork from here" })
      .click();
    await dialog().getByText("in the middle of a step").waitFor();
    await dialog().getByRole("button", { name: "Fork", exact: true }).click();
    await dialog().getByRole("alert").getByText("cannot be forked").waitFor();
    await stage().shot("fork-refused");
    const nearest = dialog().getByRole("status").getByRole("button").first();
    const point = await nearest.textContent();
    await nearest.click();
    expect(await dialog().getByLabel("After entry").inputValue()).toBe(point);
    await dialog().getByText("in the middle of a step").waitFor({ state: "detached" });
    await page.keyboard.press("Escape");
    await dialog().waitFor({ state: "detached" });
  });

  test("by the palette alone two forks are made, which differ from each other in nothing", async () => {
    const { page } = stage();
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Search or do" }).waitFor();
    await page.keyboard.type("fork from");
    await page.getByRole("option", { name: /Fork from here/ }).waitFor();
    await page.keyboard.press("Enter");
    await dialog().getByLabel("Id of the new session").fill("twin");
    await dialog().getByLabel("How many forks").fill("2");
    await dialog().getByRole("radio", { name: /Live/ }).check();
    await dialog().getByLabel("How many forks").press("Enter");
    await dialog().getByText("twin-2").waitFor();
    await page.keyboard.press("Escape");
    await dialog().waitFor({ state: "detached" });
    await stage().turnTo("compare", "twin-1");
    await page.getByText("They are the same").waitFor();
  });

  test("two sessions stand side by side, with the first difference marked in both", async () => {
    const { page } = stage();
    const { taskId } = await stage().call<{ taskId: string }>("async.sendTask", {
      sessionId: "twin-2",
      agentId: "bob",
      prompt: "mail me",
    });
    await stage().call("task.wait", { sessionId: "twin-2", taskId });
    const first = await stage().call<{ taskId: string }>("async.sendTask", {
      sessionId: "twin-1",
      agentId: "bob",
      prompt: "echo: nothing to write",
    });
    await stage().call("task.wait", { sessionId: "twin-1", taskId: first.taskId });
    await page.goto(`${stage().server.url}/s/twin-1/compare/twin-2`);
    await page.getByText("They are not the same. First of all bob answers differently.").waitFor();
    await timelines().locator(".timeline-mark line").nth(1).waitFor({ state: "attached" });
    expect(await timelines().locator(".timeline-mark line").count()).toBe(2);
    await page.getByRole("heading", { name: /Mails only in B/ }).waitFor();
    const card = page.getByRole("article", { name: /^bob answers differently/ });
    await card.getByText("nothing to write").first().waitFor();
    await stage().shot("compare");
    await card.scrollIntoViewIfNeeded();
    await stage().shot("compare-differences");
    expect(await wrongs()).toEqual([]);
    await page.setViewportSize({ width: 390, height: 844 });
    await stage().shot("compare-phone");
    await card.scrollIntoViewIfNeeded();
    await stage().shot("compare-phone-differences");
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
    await page.setViewportSize({ width: 1280, height: 800 });
  });

  test("both timelines move on one scale, which is in the address, as is a bar", async () => {
    const { page } = stage();
    const ticks = (side: number) =>
      timelines().locator(".timeline-box").nth(side).locator(".timeline-axis text").allTextContents();
    await timelines().getByRole("button", { name: "Zoom in" }).click();
    await page.waitForURL("**/compare/twin-2?*range=*");
    expect(await ticks(0)).toEqual(await ticks(1));
    await timelines().locator(".timeline-box").nth(1).focus();
    await page.keyboard.press("Home");
    await page.keyboard.press(".");
    await page.waitForURL("**/compare/twin-2?*bar=b*");
    await page
      .getByRole("complementary", { name: "Details" })
      .getByRole("link", { name: "That session at this moment" })
      .waitFor();
    await timelines().getByLabel("Lined up").selectOption("difference");
    await page.waitForURL("**align=difference*");
    await stage().shot("compare-aligned");
  });

  test("a mark leads to its entry in the past of its session", async () => {
    const { page } = stage();
    const flag = timelines()
      .locator(".timeline-box")
      .nth(1)
      .getByRole("link", { name: /^First difference of all/ });
    await flag.focus();
    await page.keyboard.press("Enter");
    await page.waitForURL("**/s/twin-2/log?at=*");
    await past().getByText("Back to live").waitFor();
    await page
      .getByRole("complementary", { name: /^Entry/ })
      .getByText("step.finished")
      .waitFor();
  });

  test("what goes on meanwhile is told, and compared when somebody wants it", async () => {
    const { page } = stage();
    await page.goto(`${stage().server.url}/s/twin-1/compare/twin-2`);
    await page.getByText("They are not the same.").waitFor();
    const { taskId } = await stage().call<{ taskId: string }>("async.sendTask", {
      sessionId: "twin-1",
      agentId: "alice",
      prompt: "who is there",
    });
    await stage().call("task.wait", { sessionId: "twin-1", taskId });
    await page.getByText("A has gone on since").waitFor();
    expect(await page.getByRole("article", { name: /^alice/ }).count()).toBe(0);
    await page.getByRole("button", { name: "Compare again" }).click();
    await page.getByRole("article", { name: "alice does something only in A" }).waitFor();
    await page.getByText("A has gone on since").waitFor({ state: "detached" });
  });

  test("the list of sessions leads to a comparison", async () => {
    const { page } = stage();
    await page.goto(`${stage().server.url}/sessions`);
    await page.getByRole("link", { name: "Compare default with another" }).waitFor();
    await stage().shot("sessions-compare");
    await page.getByRole("link", { name: "Compare default with another" }).click();
    await page.getByText("Choose the session to compare with.").waitFor();
    await page.getByLabel("The other session").selectOption("told-otherwise");
    await page.waitForURL("**/s/default/compare/told-otherwise");
    await page.getByRole("region", { name: "Summary" }).waitFor();
    await page.getByRole("link", { name: "Swap" }).click();
    await page.waitForURL("**/s/told-otherwise/compare/default");
  });

  testThatAllWentWell(stage);
});
