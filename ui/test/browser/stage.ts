import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { describe, type SuiteFactory } from "vitest";
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
  else describe.skip(`${name} (skipped: no Chromium was found; install chromium-headless-shell)`, suite);
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

  static async open(): Promise<Stage> {
    const server = await TestServer.start(RULES);
    const client = new Client({ url: server.url, token: server.token, WebSocket: WebSocket as never });
    const browser = await startChromium(CHROMIUM as string);
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce" });
    const page = await context.newPage();
    const stage = new Stage(server, client, browser, context, page);
    stage.#watch(page);
    await page.goto(server.address);
    return stage;
  }

  /** Go to a place of the session as a person who types the address. */
  async go(...parts: string[]): Promise<void> {
    await this.page.goto(`${this.server.url}/s/${["default", ...parts].join("/")}`);
  }

  /** Call a method in the session. */
  call(method: string, params: object = {}): Promise<never> {
    const call = this.client.call as (method: string, params: object) => Promise<never>;
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

  #watch(page: Page): void {
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
