import { Icon, type IconName } from "../parts/Icon";
import { setTheme, type Theme, useTheme } from "./theme";

const NEXT: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };
const ICONS: Record<Theme, IconName> = { system: "system", light: "sun", dark: "moon" };

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
      <Icon name={ICONS[theme]} />
    </button>
  );
}
