import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import type { AxeResults, RunOptions } from "axe-core";
import { beforeAll, expect, test } from "vitest";
import { AGENT_TABS, PLACES } from "./places";
import { playScene } from "./scene";
import { describeInBrowser, setStage, testThatAllWentWell } from "./stage";

const AXE = readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const ALL: RunOptions = { resultTypes: ["violations"], preload: false, iframes: false };
const COLOURS: RunOptions = { ...ALL, runOnly: ["color-contrast"] };

describeInBrowser("the manners of the page", () => {
  const stage = setStage();
  let places: (readonly [address: string, heading: string])[] = [];
  beforeAll(async () => {
    const { roomId } = await playScene(stage());
    await stage().row("bob").locator('[data-state="paused"]').waitFor();
    const tabs = AGENT_TABS.map(([tab]) => [`agents/alice?tab=${tab}`, "Alice"] as const);
    places = [...PLACES, [`chats/${roomId}`, "Chats"], ["graph?as=table", "Graph"], ["log?entry=3", "Log"], ...tabs];
    await stage().page.evaluate(await AXE);
  });

  async function visit(address: string, heading: string) {
    await stage().turnTo(address);
    await stage().page.locator("main h1", { hasText: heading }).waitFor({ state: "attached" });
    await stage().isLoaded();
  }

  /** What a checker of accessibility finds bad in what is shown. */
  async function wrongs(rules: RunOptions): Promise<string[]> {
    const found = await stage().page.evaluate(
      (options) => (globalThis as unknown as { axe: { run: (o: object) => Promise<AxeResults> } }).axe.run(options),
      rules as object,
    );
    return found.violations
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html.slice(0, 160)}`));
  }

  test.each([
    ["light", 1280, ALL],
    ["dark", 1280, COLOURS], // nothing else is different in the dark
    ["light", 390, ALL],
    ["dark", 390, COLOURS],
  ] as const)("every place is accessible, %s and %i wide", async (colorScheme, width, rules) => {
    const { page } = stage();
    await page.setViewportSize({ width, height: 800 });
    await page.emulateMedia({ colorScheme });
    const found: Record<string, string[]> = {};
    for (const [address, heading] of places) {
      await visit(address, heading);
      const wrong = await wrongs(rules);
      if (wrong.length > 0) found[address] = wrong;
    }
    expect(found).toEqual({});
  });

  test("no place has to be scrolled sideways on the narrowest phone", async () => {
    await stage().page.setViewportSize({ width: 360, height: 640 });
    const wide: string[] = [];
    for (const [address, heading] of places) {
      await visit(address, heading);
      const width = await stage().page.evaluate(() => document.documentElement.scrollWidth);
      if (width > 360) wide.push(`${address}: ${width}`);
    }
    expect(wide).toEqual([]);
    await stage().page.setViewportSize({ width: 1280, height: 800 });
  });

  test("no table is cut off on a screen, nor what is told beside the graph", async () => {
    const cut: string[] = [];
    for (const [address, heading] of [...places, ["graph?edge=carol~dave", "Graph"] as const]) {
      await visit(address, heading);
      const boxes = await stage()
        .page.locator(".table-box, .limits-usage, .graph-panel")
        .evaluateAll((all) => all.map((box) => box.scrollWidth - box.clientWidth));
      if (boxes.some((more) => more > 0)) cut.push(`${address}: ${boxes}`);
    }
    expect(cut).toEqual([]);
  });

  test("the dialogs are accessible, and Escape closes them", async () => {
    const { page } = stage();
    await stage().turnTo();
    await page.locator("main h1", { hasText: "Fleet" }).waitFor();
    for (const key of ["n", "?", "Control+k"]) {
      await page.keyboard.press(key);
      await page.getByRole("dialog").waitFor();
      await expect.poll(() => page.getByRole("dialog").locator(".loading").count()).toBe(0);
      expect(await wrongs(ALL), key).toEqual([]);
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
    }
  });

  test("the palette leads anywhere, and does things, by the keyboard alone", async () => {
    const { page } = stage();
    await page.keyboard.press("Control+k");
    await page.keyboard.type("timel");
    await page.getByRole("option", { name: /Timeline/ }).waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL("**/timeline");
    await page.keyboard.press("Control+k");
    await page.keyboard.type("resume bob");
    await page.getByRole("option", { name: /Resume/ }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByText("Resumed bob.").waitFor();
  });

  test("g and a letter lead to every place", async () => {
    const { page } = stage();
    const keys = { c: "Chats", i: "Inbox", d: "Dead letters", l: "Limits", h: "Log", f: "Fleet" };
    for (const [key, title] of Object.entries(keys)) {
      await page.keyboard.press("g");
      await page.keyboard.press(key);
      await page.locator("main h1", { hasText: title }).waitFor();
    }
  });

  test("rows of the fleet are gone through, chosen and opened with the keyboard", async () => {
    const { page } = stage();
    await stage().row("alice").focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Space");
    await page.getByText("1 chosen").waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL("**/agents/bob");
    await page.locator("main h1", { hasText: "Bob" }).waitFor();
  });

  test("the colours are chosen on the page, and kept", async () => {
    const { page } = stage();
    await page.emulateMedia({ colorScheme: "light" });
    const colour = () => page.evaluate(() => getComputedStyle(document.body).color);
    const light = await colour();
    await page.keyboard.press("Control+k");
    await page.keyboard.type("dark colours");
    await page.getByRole("option", { name: /Dark colours/ }).waitFor();
    await page.keyboard.press("Enter");
    await expect.poll(colour).not.toBe(light);
    await page.reload();
    await expect.poll(colour).not.toBe(light);
  });

  test("the address of every place survives a reload", async () => {
    const { page } = stage();
    for (const [address] of places) {
      const answer = await stage().context.request.get(stage().address(address));
      expect(await answer.text(), address).toContain('<div id="root">');
    }
    const [room = places[0]] = places.filter(([address]) => address.startsWith("chats/"));
    const filtered = ["?q=watches&sort=-tokens", "Fleet"] as const;
    for (const [address, heading] of [
      filtered,
      room as readonly [string, string],
      ["agents/alice?tab=usage", "Alice"],
    ]) {
      await visit(address, heading);
      await page.reload();
      await page.locator("main h1", { hasText: heading }).waitFor({ state: "attached" });
      expect(page.url()).toBe(stage().address(address));
    }
  });

  test("an address that leads nowhere is answered with a sentence and a way out", async () => {
    const { page } = stage();
    await stage().go("nowhere");
    await page.getByText("There is nothing at this address.").waitFor();
    await stage().go("agents", "nobody");
    await page.getByText("There is no agent 'nobody' here.").waitFor();
    await page.goto(`${stage().server.url}/s/no-such-session`);
    await page.getByRole("alert").getByText("no-such-session").waitFor();
    await page.getByRole("button", { name: "Try again" }).waitFor();
  });

  test("a deep link with the token leads there, and does not keep the token", async () => {
    const context = await stage().browser.newContext();
    const page = await context.newPage();
    await page.goto(`${stage().address("agents", "alice")}?tab=usage&token=${stage().server.token}`);
    await page.getByRole("region", { name: "Usage" }).waitFor();
    expect(page.url()).toBe(`${stage().address("agents", "alice")}?tab=usage`);
    await context.close();
  });

  testThatAllWentWell(stage);
});
