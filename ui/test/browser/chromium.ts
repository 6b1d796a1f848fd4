import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { type Browser, chromium } from "playwright-core";

/** Where `make browser` unpacks one if the machine has none. */
const OWN = join(import.meta.dirname, "../chromium/node_modules/.unpacked/chromium-headless-shell");
const NAMES = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/** The Chromium of this machine, or the one that was unpacked, or null. `WHISPERER_TEST_CHROMIUM` names another. */
export function findChromium(): string | null {
  const named = process.env.WHISPERER_TEST_CHROMIUM;
  if (named) return named;
  const folders = (process.env.PATH ?? "").split(delimiter);
  const places = [...NAMES.flatMap((name) => folders.map((folder) => join(folder, name))), OWN];
  return places.find(canRun) ?? null;
}

/** Start it, in its own sandbox where it can make one: root cannot, and where people get no user namespaces nobody can.
 * All it is shown is the page of the test's own server. */
export async function startChromium(executablePath: string): Promise<Browser> {
  const isRoot = process.getuid?.() === 0;
  try {
    return await chromium.launch({ executablePath, chromiumSandbox: !isRoot });
  } catch (error) {
    if (isRoot || !String(error).includes("No usable sandbox")) throw error;
    return await chromium.launch({ executablePath, chromiumSandbox: false });
  }
}

function canRun(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
