import { expect, test } from "vitest";
import { setTheme, useTheme } from "../../src/shell/theme";

test("the colours that are chosen in another tab are those of this one", () => {
  setTheme("light");
  localStorage.setItem("whisperer-theme", "dark");
  dispatchEvent(new StorageEvent("storage", { key: "whisperer-theme", newValue: "dark" }));
  expect(document.documentElement.dataset.theme).toBe("dark");
  expect(useTheme.getState().theme).toBe("dark");
});
