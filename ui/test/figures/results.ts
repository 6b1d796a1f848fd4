import { mkdir, writeFile } from "node:fs/promises";
import { loadavg } from "node:os";
import { resolve } from "node:path";
import { afterAll } from "vitest";

const RESULTS = resolve(import.meta.dirname, "../../../bench/results");

/** When all of a suite is measured, print its figures and keep them in a file. */
export function keepFigures(file: string, figures: object): void {
  afterAll(async () => {
    const text = JSON.stringify({ loadAverage: loadavg()[0], ...figures }, null, 2);
    await mkdir(RESULTS, { recursive: true });
    await writeFile(resolve(RESULTS, file), `${text}\n`);
    process.stdout.write(`${text}\n`);
  });
}
