import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { describeInBrowser, type Stage, setStage } from "../browser/stage";
import { lastSeqOf, worldOf } from "../browser/watching";
import { keepFigures } from "./results";

const AGENTS = 500;
const SECONDS = Number(process.env.WHISPERER_FIGURE_SECONDS ?? 30);
const NOTIFICATIONS_A_SECOND = 1000;
/** What one task of one model request comes to: queued, active, started, request begun and ended, completed, idle. */
const NOTIFICATIONS_A_TASK = 7;

describeInBrowser("the page under load", () => {
  const stage = setStage();
  const figures: Record<string, unknown> = { agents: AGENTS, seconds: SECONDS };

  beforeAll(async () => {
    for (let number = 0; number < AGENTS; number++) {
      await stage().call("async.createAgent", { agentId: `agent-${number}`, config: { prompt: "Be quick." } });
    }
  });

  keepFigures("page.json", figures);

  test("what a first look costs", async () => {
    const page = await stage().context.newPage();
    const devtools = await stage().context.newCDPSession(page);
    await devtools.send("Performance.enable");
    await page.goto(`${stage().server.url}/s/default`);
    await page.getByRole("row").nth(5).waitFor();
    const { metrics } = await devtools.send("Performance.getMetrics");
    const metricOf = (name: string) => metrics.find((metric) => metric.name === name)?.value ?? Number.NaN;
    figures.firstLook = { cpuSeconds: metricOf("TaskDuration"), scriptSeconds: metricOf("ScriptDuration") };
    await page.close();
  });

  test("a storm of notifications leaves the page as a fresh load finds it", async () => {
    await stage().go();
    await stage().page.getByRole("row").nth(5).waitFor();
    await stage().page.evaluate(watchLongTasks);
    await stage().page.evaluate(beBusy);
    await expect.poll(async () => (await stage().page.evaluate(longTasks)).length).toBe(1); // so they are seen
    await stage().page.evaluate(() => (globalThis as unknown as Handle).longTasks.splice(0));
    const before = await lastSeqOf(stage().page);
    const storm = await play(stage());
    const last = await settled(stage().page);
    const sorted = (await stage().page.evaluate(longTasks)).sort((one, other) => one - other);
    figures.storm = {
      notifications: last - before,
      notificationsASecond: Math.round((last - before) / storm),
      longTasks: sorted.length,
      longTaskMsAt95: sorted[Math.max(0, Math.ceil(sorted.length * 0.95) - 1)] ?? 0,
      longestMs: sorted.at(-1) ?? 0,
    };
    const fresh = await stage().context.newPage();
    await fresh.goto(`${stage().server.url}/s/default`);
    await expect.poll(() => lastSeqOf(fresh), { timeout: 30_000 }).toBe(last);
    expect(await worldOf(stage().page)).toEqual(await worldOf(fresh));
  });
});

/** Give out tasks at the rate that makes so many notifications; tells how long that took. */
async function play(stage: Stage): Promise<number> {
  const begun = performance.now();
  const total = Math.round((SECONDS * NOTIFICATIONS_A_SECOND) / NOTIFICATIONS_A_TASK);
  const sent: Promise<unknown>[] = [];
  for (let number = 0; number < total; number++) {
    const due = begun + (number * 1000 * NOTIFICATIONS_A_TASK) / NOTIFICATIONS_A_SECOND;
    const ahead = due - performance.now();
    if (ahead > 1) await new Promise((done) => setTimeout(done, ahead));
    sent.push(stage.call("async.sendTask", { agentId: `agent-${number % AGENTS}`, prompt: `Number ${number}` }));
  }
  await Promise.all(sent);
  return (performance.now() - begun) / 1000;
}

/** Wait until nothing happens any more and the page has it all; tells the last number. */
async function settled(page: Page): Promise<number> {
  let last = -1;
  await expect
    .poll(
      async () => {
        const before = last;
        last = await lastSeqOf(page);
        return last === before;
      },
      { timeout: 120_000, interval: 2_000 },
    )
    .toBe(true);
  return last;
}

interface Handle {
  longTasks: number[];
}

function watchLongTasks(): void {
  const seen: number[] = [];
  (globalThis as unknown as Handle).longTasks = seen;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) seen.push(entry.duration);
  }).observe({ entryTypes: ["longtask"] });
}

/** Hold up the page for once. */
function beBusy(): Promise<void> {
  return new Promise((done) =>
    setTimeout(() => {
      const begun = performance.now();
      while (performance.now() - begun < 150);
      done();
    }),
  );
}

function longTasks(): number[] {
  return (globalThis as unknown as Handle).longTasks;
}
