import { expect, test } from "vitest";
import { describeInBrowser, setStage, testThatAllWentWell } from "./stage";
import { seenTexts, watchTexts } from "./watching";

describeInBrowser("a switch, looked at", () => {
  const stage = setStage();
  const past = () => stage().page.getByRole("region", { name: "Time travel" });
  const line = (label: string) => stage().page.locator(`.react-flow__edge[aria-label^="${label}"]`);
  const wait = () => line("alice waits for bob");

  test("who waits for whom is a line in the graph, as it happens", async () => {
    await stage().cast("alice", "bob");
    await stage().call("async.pauseAgent", { agentId: "bob" });
    await stage().choose("Graph");
    await stage().page.locator('.graph-node[data-state="paused"]', { hasText: "bob" }).waitFor();
    expect(await wait().count()).toBe(0);
    await stage().call("async.sendTask", { agentId: "alice", prompt: "please ask bob" });
    await wait().waitFor({ state: "attached" });
    await stage().page.locator('.graph-node[data-state="active"]', { hasText: "alice" }).waitFor();
  });

  test("the line leads to the mail, with what is waited for", async () => {
    const { page } = stage();
    await wait().focus();
    await page.keyboard.press("Enter");
    const details = page.getByRole("complementary", { name: "Details" });
    await details.getByText("has waited for an answer of").waitFor();
    await details.getByText("A question").click();
    await details.getByText("How far are you?").waitFor();
    await page.waitForURL("**/graph?*edge=alice*bob*");
    await page.reload();
    await details.getByText("A question").waitFor();
  });

  test("the timeline shows it as a wait that goes on, and what led to what as an arrow", async () => {
    const { page } = stage();
    await stage().choose("Timeline");
    const bar = page.locator('.timeline-bar[data-bar][data-kind="wait"]');
    await bar.waitFor();
    expect(await bar.locator("title").textContent()).toContain("bob");
    await bar.click();
    const details = page.getByRole("complementary", { name: "Details" });
    await details.getByText("still running").waitFor();
    await details.getByRole("link", { name: "alice" }).waitFor();
    await page.waitForURL("**/timeline?*bar=*");
    await stage().call("async.resumeAgent", { agentId: "bob" });
    await details.getByText("Lasted").waitFor();
    await page.locator('.timeline-arrows path[data-kind="switch"]').first().waitFor({ state: "attached" });
  });

  test("the line is gone when the answer has come, and the answer stands beside the mail", async () => {
    await stage().choose("Graph");
    await stage().page.locator(".graph-node", { hasText: "alice" }).waitFor();
    expect(await wait().count()).toBe(0);
    await line("alice to bob: mails, switches").focus();
    await stage().page.keyboard.press("Enter");
    const details = stage().page.getByRole("complementary", { name: "Details" });
    await details.getByText("A question").click();
    await details.getByText("Halfway through.").waitFor();
  });

  test("the log tells it in words, and finds the switch", async () => {
    const { page } = stage();
    await stage().choose("Log");
    const log = page.getByRole("table", { name: "Log" });
    await page.getByLabel("Name").fill("switch.");
    await expect.poll(() => log.getByRole("row").count()).toBe(3);
    expect(await log.getByRole("row").nth(1).textContent()).toContain("switch.began");
    expect(await log.getByRole("row").nth(2).textContent()).toContain("switch.ended");
    await page.waitForURL("**/log?name=switch.");
    await log.getByText("switch.began").click();
    await page
      .getByRole("complementary", { name: /^Entry/ })
      .getByText("bob")
      .first()
      .waitFor();
  });

  test("from an entry the page goes back to its moment, and shows the fleet as it was", async () => {
    const { page } = stage();
    await page.getByRole("button", { name: "Show the page at this moment" }).click();
    await past().getByText("Back to live").waitFor();
    await stage().choose("Fleet");
    await stage().seeState("alice", "active");
    await stage().seeState("bob", "paused");
    await stage().row("alice").getByText("an answer of bob").waitFor();
    expect(await page.getByRole("button", { name: "New agent" }).isDisabled()).toBe(true);
    await page.waitForURL("**/s/default?at=*");
    await page.reload();
    await stage().seeState("bob", "paused");
  });

  test("the slider and the keys move through time", async () => {
    const moment = past().getByLabel("Moment");
    await moment.focus();
    await stage().page.keyboard.press("Home");
    await stage().page.getByText("There were no agents at this time.").waitFor();
    await stage().page.keyboard.press("ArrowRight");
    await stage().row("alice").waitFor();
    expect(await stage().page.locator("[data-agent]").count()).toBe(1);
  });

  test("it plays what happened until the present is reached, and goes back to live", async () => {
    const { page } = stage();
    const last = await past().getByLabel("Moment").getAttribute("max");
    await watchTexts(page, '[data-agent="alice"] .fleet-waiting');
    await past().getByLabel("Speed").selectOption("5");
    await past().getByRole("button", { name: "Play" }).click();
    await expect.poll(() => past().getByLabel("Moment").inputValue()).toBe(last);
    expect(await seenTexts(page)).toContain("an answer of bob");
    await past().getByRole("button", { name: "Back to live" }).click();
    await past().waitFor({ state: "detached" });
    await page.waitForURL("**/s/default");
    await stage().seeState("alice", "idle");
    await stage().seeState("bob", "idle");
    expect(await page.getByRole("button", { name: "New agent" }).isEnabled()).toBe(true);
  });

  testThatAllWentWell(stage);
});
