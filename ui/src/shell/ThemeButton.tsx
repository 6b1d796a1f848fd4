import { setTheme, type Theme, useTheme } from "./theme";

const NEXT: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };
const SIGNS: Record<Theme, string> = { system: "◐", light: "☀", dark: "☾" };

/** Light, dark, or as the system has it. */
export function ThemeButton() {
  const theme = useTheme((state) => state.theme);
  const label = `Colours: ${theme}. Change to ${NEXT[theme]}.`;
  return (
    <button
      type="button"
      className="icon-button"
      aria-label={label}
      title={label}
      onClick={() => setTheme(NEXT[theme])}
    >
      <span aria-hidden="true">{SIGNS[theme]}</span>
    </button>
  );
}
