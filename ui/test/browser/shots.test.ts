import { beforeAll, expect, test } from "vitest";
import { AGENT_TABS, PLACES } from "./places";
import { playScene } from "./scene";
import { describeInBrowser, setStage, testThatAllWentWell } from "./stage";

const PHONE = { width: 390, height: 844 };

describeInBrowser("pictures of a session in full swing", () => {
  const stage = setStage();
  let roomId = "";
  beforeAll(async () => {
    ({ roomId } = await playScene(stage()));
    await stage().row("bob").locator('[data-state="paused"]').waitFor();
  });

  async function shoot(name: string, ...parts: string[]) {
    await stage().turnTo(...parts);
    await stage().page.locator("main :is(h1, h2)").first().waitFor();
    await stage().isLoaded();
    await stage().shot(name);
  }

  test.each(PLACES)("of /%s, which is %s", async (path, title) => {
    await stage().turnTo(path);
    await stage().page.locator("main h1", { hasText: title }).waitFor();
    await stage().isLoaded();
    await stage().shot(title.toLowerCase().replace(" ", "-"));
  });

  test("of a chat, a mail and each tab of an agent", async () => {
    await shoot("chat", "chats", roomId);
    for (const [tab] of AGENT_TABS) await shoot(`agent-${tab}`, "agents", `alice?tab=${tab}`);
    await stage().turnTo("inbox");
    await stage().page.getByRole("list", { name: "Mails" }).getByRole("link").first().click();
    await stage().shot("mail");
  });

  test("of the past, and of the palette", async () => {
    const { page } = stage();
    await stage().turnTo("?at=60");
    await page.getByRole("region", { name: "Time travel" }).getByLabel("Moment").waitFor();
    await stage().shot("past");
    await page.getByRole("button", { name: "Back to live" }).first().click();
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog").getByRole("option").first().waitFor();
    await stage().shot("palette");
    await page.keyboard.press("Escape");
  });

  test("of the fleet, a chat and an agent on a phone", async () => {
    await stage().page.setViewportSize(PHONE);
    await shoot("phone-fleet");
    await shoot("phone-chat", "chats", roomId);
    await shoot("phone-agent", "agents", "alice");
    expect(await stage().page.evaluate(() => document.documentElement.scrollWidth)).toBe(PHONE.width);
  });

  testThatAllWentWell(stage);
});
