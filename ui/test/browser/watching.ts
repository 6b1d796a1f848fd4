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
