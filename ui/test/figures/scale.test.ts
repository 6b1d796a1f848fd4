import { execFile } from "node:child_process";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { describeInBrowser, setStage } from "../browser/stage";
import { PYTHON, ROOT } from "../server";
import { type Cost, costOf, drawn } from "./cost";
import { keepFigures } from "./results";

/** Nothing may keep the page from answering for longer, in processor time: that does not grow with what others do. */
const MOST_MS = 200;
/** A folder that was filled before: for those who measure again and again. */
const FILLED = process.env.WHISPERER_FIGURE_CROWD;

/** Anywhere, again and again: the same on each run. */
const WILD = Array.from({ length: 40 }, (_, turn) => ((turn * 37) % 100) / 100);

async function fill(data: string): Promise<void> {
  if (FILLED !== undefined) return cp(FILLED, data, { recursive: true });
  const program = join(import.meta.dirname, "crowd.py");
  await promisify(execFile)(PYTHON, [program, data], { cwd: ROOT, env: { ...process.env, PYTHONPATH: ROOT } });
}

describeInBrowser("the page at scale", () => {
  const stage = setStage({ fill });
  const figures: Record<string, Record<string, Cost>> = {};
  keepFigures("scale.json", figures);

  /** Measure what something costs and keep it under the name of a place. */
  async function measure(place: string, deeds: Readonly<Record<string, () => Promise<unknown>>>): Promise<void> {
    const { page } = stage();
    const found: Record<string, Cost> = {};
    figures[place] = found;
    found.idle = await costOf(page, () => page.waitForTimeout(1_500));
    for (const [name, deed] of Object.entries(deeds)) {
      found[name] = await costOf(page, deed);
      expect.soft(found[name].longestMs, `${place}: ${name}`).toBeLessThan(MOST_MS);
    }
  }

  /** Go to a place of one of the large sessions. */
  async function go(session: string, ...parts: string[]): Promise<void> {
    await stage().page.goto(`${stage().server.url}/s/${[session, ...parts].join("/")}`);
    await stage().isLive();
  }

  /** Put what scrolls at so many parts of its length, one after the other. */
  async function scroll(selector: string, places: readonly number[]): Promise<void> {
    const box = stage().page.locator(selector);
    for (const place of places) {
      await box.evaluate((element, part) => {
        element.scrollTop = part * (element.scrollHeight - element.clientHeight);
      }, place);
      await drawn(stage().page);
    }
  }

  /** Turn the wheel a little, again and again. */
  async function wheel(selector: string, { by = 120, times = 40 } = {}): Promise<void> {
    await stage().page.locator(selector).hover();
    for (let turn = 0; turn < times; turn += 1) {
      await stage().page.mouse.wheel(0, by);
      await drawn(stage().page);
    }
  }

  test("ten thousand agents in the fleet", async () => {
    const { page } = stage();
    await go("many");
    await page.getByRole("row").nth(5).waitFor();
    const filter = page.getByRole("searchbox", { name: "Filter agents" });
    await measure("fleet", {
      "wild scroll": () => scroll(".fleet-rows", WILD),
      "slow scroll": () => wheel(".fleet-rows"),
      "sort by activity": () => page.getByRole("button", { name: /Activity/ }).click(),
      "sort by name": () => page.getByRole("button", { name: /^Agent/ }).click(),
      filter: () => filter.pressSequentially("worker 99"),
      "filter no more": () => filter.fill(""),
      "choose all": () => page.getByLabel("Choose all agents that are shown").check(),
      "choose none": () => page.getByRole("button", { name: "Choose none" }).click(),
    });
    expect(await page.locator(".fleet-row").count()).toBeLessThan(60);
  });

  test("a log of more than a hundred thousand", async () => {
    const { page } = stage();
    await go("long", "log");
    await page.getByRole("row").nth(5).waitFor();
    await measure("log", {
      "wild scroll": () => scroll(".log-rows", WILD),
      "slow scroll": () => wheel(".log-rows", { by: -120 }),
      filter: async () => {
        await page.getByLabel("Text").fill("boat 77");
        await expect.poll(() => page.getByText("found").count()).toBe(1);
        await expect.poll(() => page.getByRole("button", { name: "Stop" }).count(), { timeout: 60_000 }).toBe(0);
      },
    });
  });

  test("its timeline", async () => {
    const { page } = stage();
    await go("long");
    await page.getByRole("row").nth(5).waitFor();
    const box = page.locator(".timeline-box");
    const press = async (key: string, times: number) => {
      for (let turn = 0; turn < times; turn += 1) {
        await box.press(key);
        await drawn(page);
      }
    };
    await measure("timeline", {
      open: async () => {
        await stage().choose("Timeline");
        await page.locator(".timeline-bar[data-bar]").first().waitFor();
        await expect.poll(() => page.getByText("Reading the log").count(), { timeout: 60_000 }).toBe(0);
        await page.waitForTimeout(1_000);
      },
      zoom: () => press("+", 8),
      pan: () => press("ArrowLeft", 20),
      "zoom out": () => press("-", 8),
      scroll: () => wheel(".timeline-box", { times: 20 }),
      follow: async () => {
        await press("End", 1);
        await page.waitForTimeout(3_000);
      },
    });
  });

  test("travel in time", async () => {
    const { page } = stage();
    await go("long");
    await page.getByRole("row").nth(5).waitFor();
    const travel = page.getByRole("slider", { name: "Moment" });
    await measure("travel", {
      leave: async () => {
        await page.getByRole("button", { name: "Travel in time" }).first().click();
        await travel.waitFor();
        await drawn(page);
      },
      "to the middle": () => moveTo(0.5),
      scrub: async () => {
        for (const place of WILD) await moveTo(place);
      },
    });
    async function moveTo(place: number): Promise<void> {
      await travel.evaluate((element, part) => {
        const input = element as HTMLInputElement;
        const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value")?.set;
        set?.call(input, String(Math.round(Number(input.max) * part)));
        input.dispatchEvent(new Event("input", { bubbles: true }));
      }, place);
      await page.waitForTimeout(150);
    }
  });

  test("an agent with thousands of tasks", async () => {
    const { page } = stage();
    await go("long", "agents", "diarist");
    await page.locator(".agent-row").first().waitFor();
    await measure("agent", {
      "three times older": async () => {
        for (let turn = 0; turn < 3; turn += 1) {
          await page.getByRole("button", { name: "Show older tasks" }).click();
          await page.waitForTimeout(700);
        }
      },
      "slow scroll": () => wheel("main", { times: 20 }),
    });
  });

  test("a room with thousands of messages", async () => {
    const { page } = stage();
    await go("long", "chats", "harbour");
    await page.locator(".chat-row").first().waitFor();
    await measure("chat", {
      "wild scroll": () => scroll(".chat-scroll", WILD),
      "slow scroll": () => wheel(".chat-scroll", { by: -300 }),
    });
  });

  test("an inbox with thousands of mails", async () => {
    const { page } = stage();
    await go("long", "inbox");
    await page.locator(".inbox-link").first().waitFor();
    await measure("inbox", {
      "wild scroll": () => scroll(".rows", WILD),
      "slow scroll": () => wheel(".rows"),
      "open a mail": () => page.locator(".inbox-link").nth(4).click(),
    });
  });

  for (const session of ["web500", "web2000"]) {
    test(`the graph of ${session}`, async () => {
      const { page } = stage();
      await go(session);
      await page.getByRole("row").nth(5).waitFor();
      await measure(`graph of ${session}`, {
        open: async () => {
          await stage().choose("Graph");
          await page.locator(".react-flow__node").first().waitFor({ timeout: 60_000 });
          await page.waitForTimeout(1_000);
        },
        zoom: () => wheel(".react-flow__pane", { by: -200, times: 10 }),
        pan: async () => {
          await page.mouse.move(640, 700);
          await page.mouse.down();
          for (let step = 0; step < 20; step += 1) {
            await page.mouse.move(640 - step * 10, 700 - step * 10);
            await drawn(page);
          }
          await page.mouse.up();
        },
      });
    });
  }
});
