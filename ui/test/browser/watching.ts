import type { Page } from "playwright-core";

interface Watched {
  seenTexts: string[];
}

/** Keep every text that elements of a selector show from now on, in the order in which they are seen. */
export async function watchTexts(page: Page, selector: string): Promise<void> {
  await page.evaluate((wanted) => {
    const seen: string[] = [];
    (globalThis as unknown as Watched).seenTexts = seen;
    const look = () => {
      for (const element of document.querySelectorAll(wanted)) {
        const text = element.textContent ?? "";
        if (!seen.includes(text)) seen.push(text);
      }
    };
    new MutationObserver(look).observe(document, { childList: true, subtree: true, characterData: true });
  }, selector);
}

export function seenTexts(page: Page): Promise<string[]> {
  return page.evaluate(() => (globalThis as unknown as Watched).seenTexts);
}

interface Handle {
  whisperer: { page: () => { live: Record<string, unknown> & { seq: number } } };
}

/** The number of the last notification that the page knows. */
export function lastSeqOf(page: Page): Promise<number> {
  return page.evaluate(() => (globalThis as unknown as Handle).whisperer.page().live.seq);
}

/** All that the page knows of the session, as plain values. */
export function worldOf(page: Page): Promise<unknown> {
  return page.evaluate(() => {
    const plain = (_: string, value: unknown) => (value instanceof Map ? [...value].sort() : value);
    return JSON.parse(JSON.stringify((globalThis as unknown as Handle).whisperer.page().live, plain)) as unknown;
  });
}
