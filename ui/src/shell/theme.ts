import { create } from "zustand";

export type Theme = "system" | "light" | "dark";
const KEY = "whisperer-theme";

function stored(): Theme {
  const value = localStorage.getItem(KEY);
  return value === "light" || value === "dark" ? value : "system";
}

export const useTheme = create<{ theme: Theme }>()(() => ({ theme: stored() }));

export function setTheme(theme: Theme): void {
  localStorage.setItem(KEY, theme);
  useTheme.setState({ theme });
  show(theme);
}

function show(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

/** What is chosen in another tab is chosen in this one. */
addEventListener("storage", ({ key }) => {
  if (key !== KEY) return;
  useTheme.setState({ theme: stored() });
  show(stored());
});

show(stored());
