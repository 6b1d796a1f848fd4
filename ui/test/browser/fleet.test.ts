import { expect, test } from "vitest";
import { describeInBrowser, setStage, testThatAllWentWell } from "./stage";

describeInBrowser("the fleet", () => {
  const stage = setStage();

  const dialog = () => stage().page.getByRole("dialog");
  const button = (name: string | RegExp) => stage().page.getByRole("button", { name });
  const forAll = (name: string) => stage().page.getByRole("region", { name: "Agents that are ticked" }).getByText(name);

  test("without agents it says what one is, and makes the first of a template", async () => {
    await stage().page.getByText("No agents yet.").waitFor();
    await button("Create the first agent").click();
    await dialog()
      .getByRole("radio", { name: /^alice/ })
      .check();
    await dialog().getByRole("button", { name: "Create" }).click();
    await stage().seeState("alice", "idle");
    expect(await stage().row("alice").textContent()).toContain("Assistant.");
  });

  test("an agent is made of a definition of one's own, with the key n", async () => {
    await stage().page.keyboard.press("n");
    await dialog().getByRole("radio", { name: "From my own definition" }).check();
    await dialog().getByLabel("Name", { exact: true }).fill("Bob the Builder");
    await dialog()
      .getByLabel(/^Description/)
      .fill("Builds what is asked for");
    await dialog().getByLabel("Prompt").fill("You build.");
    expect(await dialog().getByLabel("Id", { exact: true }).inputValue()).toBe("bob_the_builder");
    await dialog().getByLabel("Id", { exact: true }).fill("bob");
    await dialog().getByRole("button", { name: "Create" }).click();
    await stage().seeState("bob", "idle");
    expect(await stage().row("bob").textContent()).toContain("Builds what is asked for");
  });

  test("an id that is taken is refused in words, and nothing is made", async () => {
    await button("New agent").click();
    await dialog()
      .getByRole("radio", { name: /^alice/ })
      .check();
    await dialog().getByLabel("Id", { exact: true }).fill("alice");
    await dialog().getByRole("button", { name: "Create" }).click();
    await dialog().getByText("There is an agent alice already.").waitFor();
    await stage().page.keyboard.press("Escape");
    expect(await stage().page.locator("[data-agent]").count()).toBe(2);
  });

  test("a task makes the agent active with its progress, and idle when it has ended", async () => {
    const letGo = await stage().hold("pages");
    await button("Actions for Alice").click();
    await stage().page.getByRole("menuitem", { name: "Send a task" }).click();
    await dialog().getByLabel("What is to be done").fill("Read until pages");
    await dialog().getByRole("button", { name: "Send" }).click();
    await stage().seeState("alice", "active");
    const row = stage().row("alice");
    await row.getByText("40 %").waitFor();
    await row.getByText("the lock pages, with user").waitFor();
    expect(await row.textContent()).toContain("Read until pages");
    expect(await row.textContent()).toContain("Halfway through the pages");
    await letGo();
    await stage().seeState("alice", "idle");
    await row.getByText("40 %").waitFor({ state: "detached" });
  });

  test("the filter, the states and the order are in the address", async () => {
    const { page } = stage();
    await page.keyboard.press("/");
    await page.keyboard.type("builds");
    await stage().row("alice").waitFor({ state: "detached" });
    await page.waitForURL("**/s/default?q=builds");
    await page.reload();
    await stage().row("bob").waitFor();
    expect(await page.locator("[data-agent]").count()).toBe(1);
    await page.getByLabel("Filter agents").fill("");
    await button(/^stopped/).click();
    await page.getByText("No agent matches.").waitFor();
    expect(new URL(page.url()).search).toBe("?state=stopped");
    await button("Show all agents").click();
    await button(/^Tokens/).click();
    await page.waitForURL("**/s/default?sort=-tokens");
    expect(await page.locator("[data-agent]").first().getAttribute("data-agent")).toBe("alice");
    await button(/^Tokens/).click();
    await page.waitForURL("**/s/default?sort=tokens");
    await expect.poll(() => page.locator("[data-agent]").first().getAttribute("data-agent")).toBe("bob");
  });

  test("those that are chosen are paused and resumed together", async () => {
    await stage().page.getByLabel("Choose all agents that are shown").check();
    await stage().page.getByText("2 chosen").waitFor();
    await forAll("Pause").click();
    await stage().seeState("alice", "paused");
    await stage().seeState("bob", "paused");
    await stage().page.getByText("Paused 2 agents.").waitFor();
    await expect.poll(() => forAll("Pause").isDisabled()).toBe(true);
    await forAll("Resume").click();
    await stage().seeState("alice", "idle");
    await stage().seeState("bob", "idle");
  });

  test("an agent sleeps until an event, and a broadcast from the events page wakes it", async () => {
    const { page } = stage();
    await page.getByLabel("Choose Alice").uncheck();
    await forAll("Sleep").click();
    await dialog().getByLabel("For", { exact: true }).fill("");
    await dialog()
      .getByLabel(/one of these events/)
      .fill("data_ready");
    await dialog().getByRole("button", { name: "Sleep" }).click();
    await stage().seeState("bob", "sleeping");
    await stage().row("bob").getByText("event data_ready").waitFor();

    await stage().choose("Events");
    const waiting = page.getByRole("region", { name: "Who waits for events" });
    await waiting.getByText("data_ready").waitFor();
    await button("Broadcast an event").click();
    await dialog().getByLabel("Event").fill("data_ready");
    await dialog()
      .getByLabel(/as JSON/)
      .fill('{"rows": 3}');
    await dialog().getByRole("button", { name: "Broadcast" }).click();
    await waiting.waitFor({ state: "detached" });
    const event = page.getByRole("row").filter({ hasText: "data_ready" });
    await event.getByText("data_ready").click();
    await event.getByText('"rows": 3').waitFor();
    await stage().choose("Fleet");
    await stage().row("bob").waitFor();
    await stage().row("bob").locator('[data-state="sleeping"]').waitFor({ state: "detached" });
  });

  test("a stop asks first: Cancel leaves the agent, Stop stops it with the reason", async () => {
    const stop = async () => {
      await button("Actions for Bob the Builder").click();
      await stage().page.getByRole("menuitem", { name: "Stop" }).click();
    };
    await stop();
    await dialog().getByRole("button", { name: "Cancel" }).click();
    await dialog().waitFor({ state: "detached" });
    expect(await stage().row("bob").locator('[data-state="stopped"]').count()).toBe(0);
    await stop();
    await dialog().getByLabel(/^Why/).fill("not needed today");
    await dialog().getByRole("button", { name: "Stop" }).click();
    await stage().seeState("bob", "stopped");
    await stage().row("bob").getByText("not needed today").waitFor();
  });

  testThatAllWentWell(stage);
});
