import type { Page } from "playwright-core";

/** What something cost the thread of the page that draws and hears the user. */
export interface Cost {
  /** Processor time of all it had to do. */
  readonly cpuMs: number;
  /** Processor time of the longest task: for so long the page could not answer. */
  readonly longestMs: number;
  /** How long that or another task took by the clock, which is more where others use the processor too. */
  readonly longestWallMs: number;
}

interface TraceEvent {
  readonly name: string;
  readonly ph: string;
  readonly pid: number;
  readonly tid: number;
  /** In microseconds: by the clock, and of the processor. */
  readonly dur?: number;
  readonly tdur?: number;
  readonly args: { readonly name?: string };
}

/** What the page did while something was done to it; processor time is the same on a busy machine as on an idle one. */
export async function costOf(page: Page, deed: () => Promise<unknown>): Promise<Cost> {
  const browser = page.context().browser();
  if (browser === null) throw new Error("The page has no browser.");
  await browser.startTracing(page, { categories: ["-*", "toplevel"] });
  await deed();
  await drawn(page);
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString()) as { traceEvents: TraceEvent[] };
  return summed(traceEvents);
}

/** Two frames later all that was asked of the page so far is drawn. */
export async function drawn(page: Page): Promise<void> {
  await page.evaluate(
    () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)))),
  );
}

function summed(events: readonly TraceEvent[]): Cost {
  const threads = new Map<string, { cpu: number; longest: number; wall: number }>();
  for (const { ph, name, pid, tid, args } of events) {
    if (ph === "M" && name === "thread_name" && args.name === "CrRendererMain")
      threads.set(`${pid} ${tid}`, { cpu: 0, longest: 0, wall: 0 });
  }
  for (const { ph, name, pid, tid, dur = 0, tdur = 0 } of events) {
    const thread = threads.get(`${pid} ${tid}`);
    if (thread === undefined || ph !== "X" || !name.endsWith("RunTask")) continue;
    thread.cpu += tdur;
    thread.longest = Math.max(thread.longest, tdur);
    thread.wall = Math.max(thread.wall, dur);
  }
  const [busiest] = [...threads.values()].sort((one, other) => other.cpu - one.cpu);
  if (busiest === undefined || busiest.cpu === 0) throw new Error("The trace tells nothing of the page's thread.");
  const ms = (microseconds: number) => Math.round(microseconds / 100) / 10;
  return { cpuMs: ms(busiest.cpu), longestMs: ms(busiest.longest), longestWallMs: ms(busiest.wall) };
}
