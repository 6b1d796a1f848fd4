import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const figures = {
  include: ["test/figures/**/*.test.ts"],
  testTimeout: 600_000,
  hookTimeout: 300_000,
  fileParallelism: false, // they would measure each other
};
const unit = {
  include: ["test/unit/**/*.test.{ts,tsx}"],
  environment: "happy-dom",
  setupFiles: ["test/unit/patience.ts"],
  testTimeout: 60_000,
};
const browser = {
  include: ["test/browser/**/*.test.ts"],
  testTimeout: 240_000,
  hookTimeout: 240_000,
  expect: { poll: { timeout: 60_000 } },
  isolate: false, // each file has a server and a browser of its own; what drives them is loaded once
};

/** All bounds are wide: they cost nothing when all is well, and a busy machine is no mistake of the page.
 *
 * `unit`: nothing but the page's code. `server`: against a real server. `browser`: both, in a real Chromium.
 * `figures`: the same, measured; that takes longer. */
export default defineConfig({
  plugins: [react()],
  test: {
    projects: [
      { extends: true, test: { name: "unit", ...unit } },
      {
        extends: true,
        test: { name: "server", include: ["test/*.test.ts"], testTimeout: 120_000, hookTimeout: 120_000 },
      },
      { extends: true, test: { name: "browser", ...browser, fileParallelism: false } },
      { extends: true, test: { name: "figures", ...figures } },
    ],
  },
});
