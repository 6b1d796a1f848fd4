import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Browser, BrowserContext, BrowserContextOptions, Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, type SuiteFactory, test } from "vitest";
import { WebSocket } from "ws";
import { Client } from "../../src/client/client";
import { TestServer } from "../server";
import { findChromium, startChromium } from "./chromium";

const SHOTS = resolve(import.meta.dirname, "../../screenshots");
const RULES = join(import.meta.dirname, "rules.yaml");
const CHROMIUM = findChromium();

/** Tests in a real browser; without one they are skipped, and the name says why. */
export function describeInBrowser(name: string, suite: SuiteFactory): void {
  if (CHROMIUM !== null) describe(name, suite);
  else describe.skip(`${name} (skipped: no Chromium was found, and 'make browser' could not fetch one)`, suite);
}

/** A stage for all tests of a suite. What the page looks like where one fails is kept among the screenshots. */
export function setStage(options: StageOptions = {}): () => Stage {
  let stage: Stage | undefined;
  beforeAll(async () => {
    stage = await Stage.open(options);
  });
  afterEach(async ({ task }) => {
    if (task.result?.state !== "fail") return;
    await mkdir(SHOTS, { recursive: true });
    await stage?.page.screenshot({ path: join(SHOTS, `failed ${task.name}.png`.replaceAll("/", " ")) });
  });
  afterAll(() => stage?.close());
  return () => stage as Stage;
}

/** The last test of a suite: whatever was done, the browser had nothing to complain about and stayed at home. */
export function testThatAllWentWell(stage: () => Stage): void {
  test("nothing was asked of anybody else, and nothing went wrong", () => {
    expect(stage().strangers).toEqual([]);
    expect(stage().complaints).toEqual([]);
  });
}

interface StageOptions extends BrowserContextOptions {
  /** The file with what the model says. */
  rules?: string;
  /** Puts into the server's folder what is there already. */
  fill?: (data: string) => Promise<unknown>;
}

/** A real server with a scripted model, a real browser, and what the browser complained about. */
export class Stage {
  /** Errors of scripts, refusals of the content policy, failed requests. */
  readonly complaints: string[] = [];
  /** Requests to anybody but the server. */
  readonly strangers: string[] = [];

  private constructor(
    readonly server: TestServer,
    readonly client: Client,
    readonly browser: Browser,
    readonly context: BrowserContext,
    readonly page: Page,
  ) {}

  static async open({ rules = RULES, fill, ...options }: StageOptions = {}): Promise<Stage> {
    const server = await TestServer.start(rules, fill);
    const client = new Client({ url: server.url, token: server.token, WebSocket: WebSocket as never });
    const browser = await startChromium(CHROMIUM as string);
    const viewport = { width: 1280, height: 800 };
    const context = await browser.newContext({ viewport, reducedMotion: "reduce", ...options });
    context.setDefaultTimeout(60_000);
    const page = await context.newPage();
    const stage = new Stage(server, client, browser, context, page);
    stage.watch(page);
    await page.goto(server.address);
    await stage.isLive();
    return stage;
  }

  /** Wait until the page shows the present. */
  async isLive(page: Page = this.page): Promise<void> {
    await page.locator(".connection").getByText("live", { exact: true }).waitFor();
  }

  /** Wait until nothing in the view is still on its way. */
  async isLoaded(): Promise<void> {
    await expect.poll(() => this.page.locator("main .loading").count()).toBe(0);
  }

  /** Another page in the same browser, somewhere in the session. */
  async another(...parts: string[]): Promise<Page> {
    const page = await this.context.newPage();
    this.watch(page);
    await page.goto(this.address(...parts));
    await this.isLive(page);
    return page;
  }

  address(...parts: string[]): string {
    return `${this.server.url}/s/${["default", ...parts].join("/")}`;
  }

  /** Go to a place of the session as a person who types the address. */
  async go(...parts: string[]): Promise<void> {
    await this.page.goto(this.address(...parts));
    await this.isLive();
  }

  /** Go to a place of the session without loading the page anew, as a link in it does. */
  async turnTo(...parts: string[]): Promise<void> {
    await this.page.evaluate((address) => history.pushState(null, "", address), this.address(...parts));
  }

  /** Go to a place by the navigation. */
  async choose(place: string): Promise<void> {
    await this.page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: place }).click();
  }

  /** The row of an agent in the fleet. */
  row(agentId: string): Locator {
    return this.page.locator(`[data-agent="${agentId}"]`);
  }

  /** Wait until the fleet shows the agent so. */
  async seeState(agentId: string, state: string): Promise<void> {
    await this.row(agentId).locator(`[data-state="${state}"]`).waitFor();
  }

  /** Make agents with an id for a name. */
  async cast(...agentIds: string[]): Promise<void> {
    for (const agentId of agentIds) await this.call("async.createAgent", { agentId, config: { name: agentId } });
  }

  /** Hold a lock until what is returned is called. */
  async hold(name: string): Promise<() => Promise<void>> {
    const { token } = await this.call<{ token: number }>("lock.acquire", { name, ttlSeconds: 3600 });
    return async () => void (await this.call("lock.release", { name, token }));
  }

  /** Call a method in the session. */
  call<Answer = unknown>(method: string, params: object = {}): Promise<Answer> {
    const call = this.client.call as (method: string, params: object) => Promise<Answer>;
    return call.call(this.client, method, { sessionId: "default", ...params });
  }

  /** Keep a picture of the page as it is, light and dark. */
  async shot(name: string): Promise<void> {
    await mkdir(SHOTS, { recursive: true });
    for (const colorScheme of ["light", "dark"] as const) {
      await this.page.emulateMedia({ colorScheme });
      await this.page.screenshot({ path: join(SHOTS, `${name}-${colorScheme}.png`) });
    }
  }

  async close(): Promise<void> {
    this.client.close();
    await this.browser.close();
    await this.server.remove();
  }

  /** Note what goes wrong in a page. */
  watch(page: Page): void {
    page.on("pageerror", (error) => this.complaints.push(error.message));
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") this.complaints.push(message.text());
    });
    page.on("request", (request) => {
      const { origin, protocol } = new URL(request.url());
      const isOwn = origin === this.server.url || protocol === "data:" || protocol === "blob:";
      if (!isOwn) this.strangers.push(request.url());
    });
  }
}
